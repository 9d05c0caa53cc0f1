// What the parts of explain_pod give each other: the pod, read once (asked_pod.cc), the nodes that it could have
// (pod_placement.cc), and what its scheduler says (pod_scheduler.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "reconcilers/checks/inference_memory.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/explain/pod.h"

namespace gso {

struct AskedPod {
  Pod pod;
  nlohmann::json object;
  std::vector<Toleration> tolerations;
  // Its node selector and affinity, as if a DaemonSet had them.
  Operand placement;
  std::vector<ServerContainer> containers;
  bool fraction = false;  // It requests a share from KAI.
  // "deployment NAME" for `kubectl set resources`; empty: the pod has no owner that can be changed.
  [[nodiscard]] std::string owner() const;
  [[nodiscard]] std::string in_namespace() const { return "--namespace " + std::string(pod.meta.ns.view()); }
};

// The pod as the API server has it. Errors (reason `decode`): the text is not a pod.
[[nodiscard]] k8s::Result<AskedPod> read_pod(std::string_view json);

// The `kubectl` command that makes the pod request `count` of `resource`; `instead_of` is removed if it is another
// resource.
[[nodiscard]] std::string ask_for(const AskedPod& asked, const std::string& resource, std::int64_t count,
                                  const std::string& instead_of);

// Why the pod has no node, according to what the GPU nodes offer.
void explain_placement(const Snapshot& snapshot, const FleetIndex& index, const AskedPod& asked, PodExplanation& out);

// The scheduler's message about a pod that it has not placed; empty: no message.
[[nodiscard]] std::string scheduler_says(const AskedPod& asked);

// A pod that waits for a scheduler that does not seem to run: the names of the API server's default scheduler and of
// KAI are known; any other scheduler is judged by whether it reports anything.
[[nodiscard]] std::optional<PodCause> unseen_by_schedulers(const Snapshot& snapshot, const AskedPod& asked);

// Why a pod is not placed although GPUs are free for it on `nodes` (for people; `node` is one of them): the other
// resources that the scheduler finds insufficient, or `otherwise`.
[[nodiscard]] PodCause not_placed(const AskedPod& asked, const std::string& otherwise, const std::string& nodes,
                                  const std::string& node);

// The `kubectl` command that makes another scheduler place the pod, or the pods that its owner creates.
[[nodiscard]] std::string schedule_by(const AskedPod& asked, std::string_view scheduler);
// The `kubectl` command that makes the pod, or the pods that its owner creates, tolerate the taint.
[[nodiscard]] std::string tolerate(const AskedPod& asked, const Taint& taint);

// True if the node's plugin refuses more than one replica of that resource for one container.
[[nodiscard]] bool refuses_several(const FleetIndex& index, const Node& node, std::string_view resource);

}  // namespace gso
