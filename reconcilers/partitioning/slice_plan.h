// Which pods get slices on which nodes, and what each node should carry for that: from nodes and pods to packing.h and
// back. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reconcilers/model/plan.h"
#include "reconcilers/model/plan_draft.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/partitioning/partitioned_node.h"

namespace gso {

// --- Pods that wait for slices: which are considered, in which order, and on which nodes they can be. Source:
// nebuly-ai/nos at 12e0a72, pkg/util/pod/pod.go (which pods are considered).

struct PendingPods {
  std::vector<const SlicePod*> considered;  // Higher priority first, then smaller requests, then older, then by name.
  std::vector<const SlicePod*> refused;     // A container has a slice_fault().
  // The scheduler lacks something else on every node, so that a slice would not help.
  std::vector<const SlicePod*> lack_no_slice;
};
[[nodiscard]] PendingPods pending_pods(const World& world, std::int64_t mps_user);

// Why nos's device plugin serves that container of the pod with no slice, or the container cannot use its slice: the
// codes of lint. Empty: nothing is known against it. `mps_user`: PartitioningSettings::mps_user.
[[nodiscard]] std::vector<Reason> slice_faults(const SlicePod& pod, std::string_view container, std::int64_t mps_user);
// Why a pod is refused, for people: the faults of the first container that has some. Empty: it is not.
[[nodiscard]] std::string describe_refusal(const SlicePod& pod, std::int64_t mps_user);

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

// GiB that the slices of the GPU can have together: whole ones, rounded down.
[[nodiscard]] std::int64_t capacity_of_gpu(const GpuSlices& gpu, const PartitioningSettings& settings);
// What packing.h sees of a node that carries `carries`. `sizes`: ascending, without repetition; slices of other sizes
// are left out of the answer and stay where they are.
[[nodiscard]] PackNode pack_node_of(const PartitionedNode& node, const Geometry& carries, bool changeable,
                                    const std::vector<std::int64_t>& sizes, const PartitioningSettings& settings);
// The pod's slices fit on the node if nothing else is there.
[[nodiscard]] bool fits_when_empty(const NodeSlices& slices, const SlicePod& pod, const PartitioningSettings& settings);

struct SlicePlan {
  std::vector<std::int64_t> sizes;                  // As in Packing.
  std::vector<std::optional<std::size_t>> node_of;  // By pod: an index of `nodes`; nullopt: it gets nothing.
  std::vector<SizeCounts> demand;                   // By node: the slices of the pods that are put there.
  std::vector<NodePacking> packing;                 // By node.
  std::vector<Geometry> geometry;                   // By node: what it should carry, also where nothing changes.
  std::size_t compared = 0;                         // As in Packing.
  std::size_t planned = 0;
};

// A pod that slices are planned for.
struct PodToPlace {
  const SlicePod* pod = nullptr;
  std::set<std::size_t> refused_by;  // Indices of the nodes to which the scheduler does not bind it (node_moves.h).
  std::set<std::size_t> cut_for;     // Of those whose label was moved for it within the last hour.
  // Each cut can take free slices from others, and restarts a plugin: for a pod that slices do not help, such as one
  // whose volume is elsewhere, there must be an end.
  static constexpr std::size_t kMostNodes = 3;
  // As many nodes were cut for it as an hour allows: no other one is.
  [[nodiscard]] bool is_limited() const { return cut_for.size() >= kMostNodes; }
  // Its slices can be on that node.
  [[nodiscard]] bool can_be_on(std::size_t node) const {
    return !refused_by.contains(node) && (!is_limited() || cut_for.contains(node));
  }
};
// By node index: the slices of a key that is on its way to the node.
using PendingKeys = std::map<std::size_t, Geometry>;

// `pods`: in the order in which they are served. Nodes of `pending` carry those slices and do not change; others change
// only if more pods are served then.
[[nodiscard]] SlicePlan plan_slices(const std::vector<PartitionedNode>& nodes, const std::vector<PodToPlace>& pods,
                                    const PendingKeys& pending, const PartitioningSettings& settings,
                                    PlanningCache& cache);

// Free slices of a node that no pod of the plan and no bound pod needs, by size.
[[nodiscard]] SliceCounts idle_slices(const PartitionedNode& node, const SlicePlan& plan, std::size_t index);
// `geometry` without these: of each size from the last GPU on, and none that a bound pod could have.
[[nodiscard]] Geometry without_idle(const PartitionedNode& node, const Geometry& geometry, SliceCounts idle);

// --- What pods that wait for slices hear: one Event each, and a finding where no GPU can ever serve the pod.

// A container could not use its slice.
void report_refused(PlanDraft& draft, const std::vector<const SlicePod*>& pods);
// The scheduler's message names no slice.
void report_other_lacks(PlanDraft& draft, const std::vector<const SlicePod*>& pods);
// "the GPUs of node n1 are not partitioned: ..."; it is PartitionedNode::left_alone.
[[nodiscard]] std::string describe_left_alone(const PartitionedNode& node);
// No node could hold the pod if it were empty. `largest`: GiB that one GPU can carry at most; 0: none can be divided.
void report_too_large(PlanDraft& draft, const std::vector<const SlicePod*>& pods, std::int64_t largest);
// The node on which each pod gets its slices, or why none can help now and what would be nearest. A pod for which a
// node has the memory once its label has moved hears that later: until then nothing is decided.
void report_planned(PlanDraft& draft, const std::vector<PartitionedNode>& nodes, const std::vector<PodToPlace>& pods,
                    const SlicePlan& plan);

}  // namespace gso
