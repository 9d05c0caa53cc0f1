// Which pods get slices on which nodes, and what each node should carry for that: from nodes and pods to packing.h and
// back. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "reconcilers/partitioning/partitioned_node.h"
#include "reconcilers/partitioning/pending_pods.h"

namespace gso {

// What a plan may do with a node.
struct NodeStanding {
  // The slices, used and free, with which it serves pods: those that it reports, or those of a profile that it is about
  // to show.
  Geometry carries;
  bool serves = false;      // Pods can be put on its free slices.
  bool changeable = false;  // It can get other slices.
  bool moves = false;       // Its label was moved, and its report of the new slices is awaited: that ends by itself.
  std::string why;          // Not changeable: a part of a sentence, for people.
};

// GiB that the slices of one GPU of the node can have together: whole ones, rounded down.
[[nodiscard]] std::int64_t capacity_of_gpu(const NodeSlices& slices, const PartitioningSettings& settings);
// What packing.h sees of a node that carries `carries`. `sizes`: ascending, without repetition; slices of other sizes
// are left out of the answer and stay where they are.
[[nodiscard]] PackNode pack_node_of(const PartitionedNode& node, const NodeStanding& standing,
                                    const std::vector<std::int64_t>& sizes, const PartitioningSettings& settings);
// The pod's slices fit on the node if nothing else is there.
[[nodiscard]] bool fits_when_empty(const NodeSlices& slices, const SlicePod& pod, const PartitioningSettings& settings);

struct SlicePlan {
  std::vector<std::int64_t> sizes;                  // As in Packing.
  std::vector<std::optional<std::size_t>> node_of;  // By pod: an index of `nodes`; nullopt: it gets nothing.
  std::vector<SizeCounts> demand;                   // By node: the slices of the pods that are put there.
  std::vector<NodePacking> packing;                 // By node.
  std::vector<Geometry> geometry;                   // By node: what it should carry.
  std::vector<bool> changes;                        // By node: `geometry` is not what it carries.
};

// By pod: the nodes that the scheduler refuses it, ascending (actuation.h).
using RefusedPlaces = std::vector<std::vector<std::size_t>>;

// `standings`: by node. `pods`: in the order in which they are served, none on a node of `refused`. Nodes change only
// if more pods are served then.
[[nodiscard]] SlicePlan plan_slices(const std::vector<PartitionedNode>& nodes,
                                    const std::vector<NodeStanding>& standings,
                                    const std::vector<const SlicePod*>& pods, const RefusedPlaces& refused,
                                    const PartitioningSettings& settings, PlanningCache& cache);

// Free slices of a node that no pod of the plan and no bound pod needs, by size.
[[nodiscard]] SliceCounts idle_slices(const PartitionedNode& node, const SlicePlan& plan, std::size_t index);
// `geometry` without these: of each size from the last GPU on, and none that a bound pod could have.
[[nodiscard]] Geometry without_idle(const PartitionedNode& node, const Geometry& geometry, SliceCounts idle);

}  // namespace gso
