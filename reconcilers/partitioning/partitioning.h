// node.partitioning: gives the GPUs of labelled nodes the slices that pending pods ask for. It has the job of nos's
// gpu-partitioner and its interface: the label nos.nebuly.com/gpu-partitioning=mps, the resources nvidia.com/gpu-<N>gb,
// the status annotations of nos's gpu-agent, and the profile documents of nos's fork of the device plugin.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/cluster/discovery.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/plan_draft.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/partitioning/node_moves.h"
#include "reconcilers/partitioning/partitioned_node.h"

namespace gso {

inline constexpr std::string_view kNodePartitioning = "node.partitioning";

// The labelled nodes of one pass, read once for all that count them or plan for them.
struct LabelledNodes {
  std::vector<PartitionedNode> nodes;  // By name.
  Plan said;                           // What follow_moves() adds to the plan.
  std::set<std::string> left;  // Names of nodes that the operator has partitioned and that are not labelled any more.
};
// Reads the Nodes of the names in `nodes`, which are labelled for partitioning or have the operator's annotation of it,
// and World::partitioning. `cache` changes no answer.
[[nodiscard]] LabelledNodes read_labelled_nodes(const Snapshot& s, const Discovery& discovery,
                                                const std::set<std::string>& nodes, PlanningCache& cache);

// Reads also the ConfigMaps that nos's device plugin mounts.
void plan_partitioning(PlanDraft& draft, const Discovery& discovery, const FleetSlots& slots, LabelledNodes labelled,
                       PlanningCache& cache);

// --- How far node.partitioning goes, and what is said while it changes nothing.

// `off`: nothing is watched or planned. `observe`: what would be written is reported instead.
enum class PartitioningMode : std::uint8_t { enforce, observe, off };

inline constexpr std::string_view kPartitioningOff = "PartitioningOff";

// The mode that applies: an operator that only observes rollouts only observes partitioning as well.
[[nodiscard]] PartitioningMode effective_mode(PartitioningMode mode, const PlannerSettings& settings);

// The plan with a finding in place of each write, and with Events that say so.
[[nodiscard]] Plan observed(Plan plan);

// What is said under Off: that nodes are labelled, and left alone. `labelled`: names of Nodes.
[[nodiscard]] Plan switched_off(const World& world, const std::set<std::string>& labelled);

// --- What the official device plugin can do for pods that wait for slices: replicas of one size, as a profile that a
// person can write. The operator never writes it. Source: NVIDIA/k8s-device-plugin v0.20, api/config/v1 (no memory per
// replica; `rename` and `devices` are ignored) and cmd/mps-control-daemon (a replica's memory limit is the GPU's
// memory divided by the replicas).

struct HomogeneousReplicas {
  std::int64_t replicas = 0;       // Of each GPU, at least 2.
  std::int64_t gigabytes = 0;      // GiB that each replica has, rounded down.
  std::int64_t largest_asked = 0;  // GiB: the largest slice that fits a replica.
  friend bool operator==(const HomogeneousReplicas&, const HomogeneousReplicas&) = default;
};
// As many replicas as possible that are as large as the largest slice that `pods` ask for. Slices that do not fit a GPU
// twice do not count; nullopt: the pods ask for no other ones.
[[nodiscard]] std::optional<HomogeneousReplicas> nearest_replicas(const NodeSlices& slices,
                                                                  const std::vector<const SlicePod*>& pods,
                                                                  const PartitioningSettings& settings);

}  // namespace gso
