// Pods that wait for slices: which are considered, in which order, and on which nodes they can be.
//
// Source: nebuly-ai/nos at 12e0a72, pkg/util/pod/pod.go (which pods are considered).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/partitioning/partitioned_node.h"

namespace gso {

struct PendingPods {
  std::vector<const SlicePod*> considered;  // Higher priority first, then smaller requests, then older, then by name.
  std::vector<const SlicePod*> refused;     // One of the containers asks for more than one slice.
};
[[nodiscard]] PendingPods pending_pods(const World& world);

// "nvidia.com/gpu-10gb": 2 of container "main": why a pod is refused. For people.
[[nodiscard]] std::string describe_refusal(const SlicePod& pod);

// On which nodes the pod can be: by its node selector, required affinity and tolerations, and by the CPUs, the memory
// and the number of pods that are left there.
class Admission {
 public:
  explicit Admission(const SlicePod& pod);  // Which outlives this.
  [[nodiscard]] bool admits(const PartitionedNode& node) const {
    return follows_rules(*node.node) && node.has_room_for(*pod_);
  }
  // Selector, affinity and tolerations alone.
  [[nodiscard]] bool follows_rules(const Node& node) const;

 private:
  const SlicePod* pod_;
  std::vector<StringMap::Entry> selector_;
  std::vector<std::vector<NodeSelectorRequirement>> terms_;
  std::vector<Toleration> tolerations_;
};
// A text that is equal for pods that can be on the same nodes.
[[nodiscard]] std::string admission_signature(const SlicePod& pod);

// "4 CPUs and 512 MiB of memory": what the pod asks for of a node beside its GPUs. For people.
[[nodiscard]] std::string describe_needs(const PodNeeds& needs);
// "10 GiB", "2 x 10 GiB": what the pod asks for. For people.
[[nodiscard]] std::string describe_need(const SlicePod& pod);

}  // namespace gso
