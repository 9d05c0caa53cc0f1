// What the node of a pod has to do with its trouble: see pod_parts.h.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reconcilers/explain/node.h"
#include "reconcilers/explain/pod_parts.h"
#include "reconcilers/explain/remedy.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/node/assess.h"

namespace gso {
namespace {

// True if a sentence names `name` as a whole: "team/job-1" is not in "waits for team/job-10".
bool is_named(std::string_view text, std::string_view name) {
  const auto goes_on = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '/'; };
  for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !goes_on(text[at - 1])) && (end == text.size() || !goes_on(text[end]))) return true;
  }
  return false;
}

}  // namespace

std::optional<PodCause> node_unreachable(const Snapshot& s, const AskedPod& asked) {
  const std::string name(asked.pod.node_name.view());
  const Node* node = s.world.nodes.find(name);
  if (s.world.nodes.all().empty() || (node != nullptr && node->ready)) return std::nullopt;
  const bool ending = asked.pod.meta.deletion_timestamp.has_value();
  return PodCause{
      Severity::error,
      "NodeNotReady",
      fmt::format("node {} {}{}", name, node == nullptr ? "does not exist" : "is not Ready",
                  ending ? ": the pod is being deleted, and no kubelet confirms that it has ended"
                         : ": the pod does not run, or nobody knows whether it does"),
      node == nullptr ? describe_pod(asked) : "kubectl describe node " + name,
      {"whoever runs the node brings it back, or deletes the Node object once the machine is certainly off"}};
}

std::optional<PodCause> node_state(const Snapshot& s, const FleetIndex& index, const AskedPod& asked) {
  const NodeAssessment* a = index.assessment(asked.pod.node_name.view());
  if (a == nullptr || a->profile == nullptr) return std::nullopt;
  const std::string node(asked.pod.node_name.view());
  const std::string explain = "gpu-sharing-operator explain " + node;
  const bool mps = a->profile->profile().strategy() == Strategy::mps;
  const NodePods pods = sort_pods(index.impl().installation_of(*a), index.impl().pods_of(node));
  const bool daemon = std::ranges::any_of(pods.mps, [](const Pod* pod) { return is_serving(*pod); });
  if (mps && !daemon) {
    return PodCause{
        Severity::error, "NoMPSDaemon",
        fmt::format("node {} should share its GPUs by MPS, but no MPS daemon runs on it: CUDA clients wait or fail",
                    node),
        explain};
  }
  if (a->change) {
    const std::string who = blocking_pods_of(s.world, node);
    const bool waits = is_named(who, k8s::to_string(asked.pod.meta.key()));
    return PodCause{Severity::warning, "NodeInChange",
                    fmt::format("node {} is being changed to {} now{}{}", node, a->change->to,
                                who.empty() ? "" : ", and ", waits ? "waits for this pod to end" : who),
                    std::string(kRolloutStatusCommand)};
  }
  if (a->phase == Phase::pending && is_named(blocking_pods_of(s.world, node), k8s::to_string(asked.pod.meta.key()))) {
    return PodCause{Severity::warning, "NodeWaits",
                    fmt::format("node {} must change to {} and waits for this pod to end", node, a->target.view()),
                    std::string(kRolloutStatusCommand)};
  }
  if (a->phase == Phase::failed || (a->phase == Phase::up_to_date && !a->matches())) {
    return PodCause{Severity::warning, "NodeDiffers",
                    fmt::format("node {} does not show its profile: {}", node, shown_difference(*a)), explain};
  }
  return std::nullopt;
}

void explain_neighbours(const Snapshot& s, const FleetIndex& index, const AskedPod& asked, PodExplanation& out) {
  const auto add = [&out](Severity severity, const char* code, std::string text, std::string command,
                          std::vector<std::string> options = {}) {
    out.causes.push_back({severity, code, std::move(text), std::move(command), std::move(options)});
  };
  const NodeAssessment* a = index.assessment(asked.pod.node_name.view());
  const auto listed = s.consumers.find(std::string(asked.pod.node_name.view()));
  if (a == nullptr || a->profile == nullptr || listed == s.consumers.end()) return;
  const Profile& profile = a->profile->profile();
  std::vector<std::string> beside;
  std::vector<std::string> unasked;
  for (const Pod& other : listed->second.pods) {
    if (other.meta.uid == asked.pod.meta.uid) continue;
    beside.push_back(k8s::to_string(other.meta.key()));
    const bool free = other.gpu_requests.empty() && other.nvidia_visible_devices;
    if (free) unasked.push_back(beside.back());
  }
  std::ranges::sort(beside);
  std::ranges::sort(unasked);
  const std::string node(asked.pod.node_name.view());
  if (!unasked.empty()) {
    add(Severity::warning, "UnaccountedUse",
        fmt::format("pods on node {} can use its GPUs without a request: {}", node, fmt::join(unasked, ", ")),
        fmt::format("kubectl describe pod {} --namespace {}", unasked.front().substr(unasked.front().find('/') + 1),
                    unasked.front().substr(0, unasked.front().find('/'))),
        {"the owners of these pods request a GPU, or remove NVIDIA_VISIBLE_DEVICES"});
  }
  if (profile.strategy() == Strategy::none) return;
  for (const auto& [resource, count] : asked.pod.gpu_requests) {
    if (count > 1) {
      add(Severity::warning, "SeveralReplicas",
          fmt::format("the pod has {} of {}, which are replicas of shared GPUs: several replicas give it neither "
                      "more time nor more memory, and might be on the same GPU",
                      count, resource.view()),
          show_template(asked), {"the pod's owner requests 1, or selects nodes whose GPUs are not shared"});
    }
  }
  if (!beside.empty()) {
    constexpr std::size_t kNamed = 5;
    const std::size_t rest = beside.size() > kNamed ? beside.size() - kNamed : 0;
    beside.resize(std::min(beside.size(), kNamed));
    add(Severity::info, "SharesGPUs",
        fmt::format("the GPUs of node {} are shared ({}); {}{} also {} on this node", node,
                    to_string(profile.strategy()), fmt::join(beside, ", "),
                    rest > 0 ? fmt::format(" and {} more", rest) : "", beside.size() + rest == 1 ? "runs" : "run"),
        "gpu-sharing-operator explain " + node);
  }
}

}  // namespace gso
