// node.partitioning: gives the GPUs of labelled nodes the slices that pending pods ask for. It has the job of nos's
// gpu-partitioner and its interface: the label nos.nebuly.com/gpu-partitioning=mps, the resources nvidia.com/gpu-<N>gb,
// the status annotations of nos's gpu-agent, and the profile documents of nos's fork of the device plugin.
#pragma once

#include <string_view>

#include "reconcilers/cluster/discovery.h"
#include "reconcilers/model/plan_draft.h"

namespace gso {

inline constexpr std::string_view kNodePartitioning = "node.partitioning";

// Reads the World through the draft's snapshot: Nodes, the ConfigMaps that nos's device plugin mounts, and
// World::partitioning.
void plan_partitioning(PlanDraft& draft, const Discovery& discovery);

}  // namespace gso
