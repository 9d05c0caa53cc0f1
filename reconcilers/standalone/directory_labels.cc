#include "reconcilers/standalone/directory_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

#include "reconcilers/cluster/label_owners.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/mps_pipe_directory.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/node/mps_daemon_change.h"

namespace gso {
namespace {

// Bounds the writes where another client keeps changing the label.
constexpr Duration kReadyFor = std::chrono::seconds(10);
// The DaemonSet's controller replaces a pod within seconds, and a DaemonSet can be missing temporarily.
constexpr Duration kGoneFor = std::chrono::minutes(2);

// By the pod's init container, or by the container itself if it has ended because the daemon of the host had moved.
// Empty: no report, or it was lost with the container.
std::string_view directory_of(const Pod& pod) {
  for (const ContainerStatus& container : pod.containers) {
    const std::string_view moved = reported_pipe_directory(container.last_message());
    if (!moved.empty()) return moved;
  }
  for (const ContainerStatus& container : pod.init_containers) {
    if (container.name != kStandaloneMpsCheck || !container.ready || !container.terminated) continue;
    return reported_pipe_directory(container.terminated->message.view());
  }
  return {};
}

class DirectoryLabel {
 public:
  DirectoryLabel(Pass& pass, const Node& node)
      : pass_(pass),
        node_(node),
        actual_(node.meta.labels.get(kMpsPipeDirectory).value_or("")),
        labelled_(node.meta.labels.contains(kMpsPipeDirectory)) {}

  void run() {
    const Pod* pod = pod_of_standalone(pass_.index.discovery.standalone, pass_.index.pods_of(node_.meta.name));
    if (pod == nullptr) return gone();
    if (is_serving(*pod)) serves(directory_of(*pod));
  }

 private:
  void gone() {
    if (!labelled_ || mps_daemon_change_on(node_).change) return;
    if (!pass_.held_for({Timer::mps_gone, node_.meta.name, std::string(kMpsPipeDirectory)}, kGoneFor)) return;
    remove("no standalone MPS daemon runs on the node any more");
  }

  void serves(std::string_view directory) {
    if (directory.empty()) return;
    const std::string wanted = pipe_directory_label(directory);
    if (wanted.empty()) {
      pass_.finding(Severity::warning, node_ref(node_.meta.name), "MPSDirectoryUnlabelled",
                    fmt::format("the node's standalone MPS daemon is in {}, which no label's value can express, so the "
                                "node has no label {}. Choose a standaloneMps.pipeDirectory of at most 64 letters, "
                                "digits, '-', '_' and '/' if pods must select nodes by it",
                                directory, kMpsPipeDirectory));
    }
    if (wanted.empty() ? !labelled_ : actual_ == wanted) return;
    if (!pass_.held_for({Timer::mps_ready, node_.meta.name, std::string(directory)}, kReadyFor)) return;
    if (wanted.empty()) return remove("the node's standalone MPS daemon is in another directory now");
    PatchNode patch;
    patch.set[std::string(kMpsPipeDirectory)] = wanted;
    add(std::move(patch), fmt::format("the node's standalone MPS daemon is in {}", directory));
  }

  void remove(std::string why) {
    PatchNode patch;
    patch.remove.insert(std::string(kMpsPipeDirectory));
    add(std::move(patch), std::move(why));
  }

  void add(PatchNode patch, std::string why) {
    if (!pass_.takes_more()) return;
    patch.name = node_.meta.name;
    pass_.add(std::move(patch), "MPSDirectory", std::move(why), false, node_.meta.name);
  }

  Pass& pass_;
  const Node& node_;
  std::string_view actual_;
  bool labelled_;
};

// The timers of this file have a scope; those of KAI's mark have none.
void keep_timers(Pass& pass) {
  for (const auto& [timer, since] : pass.s.timers) {
    const bool of_mps = timer.timer == Timer::mps_ready || timer.timer == Timer::mps_gone;
    if (of_mps && !timer.scope.empty()) pass.keep(timer);
  }
}

}  // namespace

void plan_directory_labels(Pass& pass) {
  const bool complete = std::ranges::none_of(pass.index.discovery.standalone, [&](const Operand& daemon) {
    return pass.s.world.unsynced_namespaces.contains(daemon.key.ns);
  });
  if (!complete) return keep_timers(pass);
  for (const std::string& name : pass.index.nodes_in(Bucket::mps_directory)) {
    const Node* node = pass.s.world.nodes.find(name);
    if (node == nullptr || is_held(*node)) continue;
    if (label_mode_of(*node, pass.s.settings) == PlannerSettings::LabelMode::verify) continue;
    DirectoryLabel(pass, *node).run();
  }
}

}  // namespace gso
