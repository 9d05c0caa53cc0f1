// What the parts of explain_pod share: the pod, read once.
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
  bool fraction = false;  // Asks KAI for a share.
  // "deployment NAME" for `kubectl set resources`; empty: nobody owns the pod that could be changed.
  [[nodiscard]] std::string owner() const;
  [[nodiscard]] std::string in_namespace() const { return "--namespace " + std::string(pod.meta.ns.view()); }
};

// The pod as the API server has it. Errors (reason `decode`): the text is no pod.
[[nodiscard]] k8s::Result<AskedPod> read_pod(std::string_view json);

// `kubectl` that makes the pod ask for `count` of `resource`; `instead_of` is dropped where it is another one.
[[nodiscard]] std::string ask_for(const AskedPod& asked, const std::string& resource, std::int64_t count,
                                  const std::string& instead_of);

// Why no node has it, by what the GPU nodes offer.
void explain_placement(const Snapshot& snapshot, const FleetIndex& index, const AskedPod& asked, PodExplanation& out);

// The scheduler's message about a pod that it has not placed; empty: none.
[[nodiscard]] std::string scheduler_says(const AskedPod& asked);

// A pod that waits for a scheduler of a name that nobody seems to run: the API server's own and KAI's are known, any
// other is judged by its silence.
[[nodiscard]] std::optional<PodCause> unseen_by_schedulers(const Snapshot& snapshot, const AskedPod& asked);

// Why a pod is not placed although GPUs are free for it on `nodes` (for people; `node` is one of them): what else the
// scheduler finds too little of, or `otherwise`.
[[nodiscard]] PodCause not_placed(const AskedPod& asked, const std::string& otherwise, const std::string& nodes,
                                  const std::string& node);

// `kubectl` that has another scheduler place the pod, or those that its owner makes.
[[nodiscard]] std::string schedule_by(const AskedPod& asked, std::string_view scheduler);
// `kubectl` that makes the pod, or those that its owner makes, tolerate the taint.
[[nodiscard]] std::string tolerate(const AskedPod& asked, const Taint& taint);

// True where the node's plugin refuses more than one replica of that resource to one container.
[[nodiscard]] bool refuses_several(const FleetIndex& index, const Node& node, std::string_view resource);

}  // namespace gso
