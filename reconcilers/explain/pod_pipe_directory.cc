// A client that mounts another directory than the one where its node's standalone MPS daemon is.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "reconcilers/explain/pod_parts.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/labels.h"

namespace gso {

std::optional<PodCause> other_pipe_directory(const World& world, const AskedPod& asked) {
  const Node* node = world.nodes.find(std::string(asked.pod.node_name.view()));
  if (node == nullptr) return std::nullopt;
  const std::string daemon = pipe_directory_of_label(node->meta.labels.get(kMpsPipeDirectory).value_or(""));
  if (daemon.empty()) return std::nullopt;
  const RareList<Interned>& mounted = asked.pod.host_paths;
  const auto shows = [&](const Interned& path) { return is_at_or_below(daemon, path.view()); };
  // Of other directories it is not known whether they are for MPS.
  const auto other =
      std::ranges::find_if(mounted, [](const Interned& path) { return is_usual_pipe_directory(path.view()); });
  if (other == mounted.end() || std::ranges::any_of(mounted, shows)) return std::nullopt;
  return PodCause{
      Severity::warning,
      "OtherPipeDirectory",
      fmt::format("the pod mounts {}, but the MPS daemon of node {} is in {} (the node's label {}): a client that "
                  "looks in another directory gets the whole GPU, without an error",
                  other->view(), node->meta.name, daemon, kMpsPipeDirectory),
      show_template(asked),
      {fmt::format("mount {} and set CUDA_MPS_PIPE_DIRECTORY to it", daemon),
       fmt::format("select nodes whose daemon is in {}: {}={}", other->view(), kMpsPipeDirectory,
                   pipe_directory_label(other->view()))}};
}

}  // namespace gso
