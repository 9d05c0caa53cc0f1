// node.partitioning: gives the GPUs of labelled nodes the slices that pending pods ask for. It has the job of nos's
// gpu-partitioner and its interface: the label nos.nebuly.com/gpu-partitioning=mps, the resources nvidia.com/gpu-<N>gb,
// the status annotations of nos's gpu-agent, and the profile documents of nos's fork of the device plugin.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "reconcilers/cluster/discovery.h"
#include "reconcilers/model/plan_draft.h"
#include "reconcilers/partitioning/planning_cache.h"

namespace gso {

inline constexpr std::string_view kNodePartitioning = "node.partitioning";

// What the rest of the fleet says about the cluster's budget (PlannerSettings::cluster_max_unavailable).
struct FleetCounts {
  std::int64_t nodes = 0;  // That the official device plugins serve.
  std::int64_t busy = 0;   // Of these, in a change or unavailable, and those that rollouts start in this pass.
};

// Labelled nodes: how many, and those whose move is in progress. Such a node holds a slot of that budget.
struct SliceMoves {
  std::int64_t nodes = 0;
  std::set<std::string> moving;
};
[[nodiscard]] SliceMoves slice_moves(const Snapshot& s, const Discovery& discovery, const std::set<std::string>& nodes,
                                     PlanningCache& cache);

// Reads the World through the draft's snapshot: the Nodes of the names in `nodes`, which are labelled for partitioning
// or have the operator's annotation of it, the ConfigMaps that nos's device plugin mounts, and World::partitioning.
// `cache` changes no answer.
void plan_partitioning(PlanDraft& draft, const Discovery& discovery, const FleetCounts& fleet,
                       const std::set<std::string>& nodes, PlanningCache& cache);

}  // namespace gso
