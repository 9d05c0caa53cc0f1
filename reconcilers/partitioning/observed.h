// node.partitioning under the modes Observe and Off.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/partitioning/mode.h"

namespace gso {

inline constexpr std::string_view kPartitioningOff = "PartitioningOff";

// The mode that applies: an operator that only observes rollouts only observes partitioning as well.
[[nodiscard]] PartitioningMode effective_mode(PartitioningMode mode, const PlannerSettings& settings);

// The plan with a finding in place of each write, and with Events that say so.
[[nodiscard]] Plan observed(Plan plan);

// What is said under Off: that nodes are labelled, and left alone. `labelled`: names of Nodes.
[[nodiscard]] Plan switched_off(const World& world, const std::set<std::string>& labelled);

}  // namespace gso
