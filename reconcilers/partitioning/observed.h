// Modes of node.partitioning, and what is said while it changes nothing.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// --- How far node.partitioning goes.

// `off`: nothing is watched or planned. `observe`: what would be written is reported instead.
enum class PartitioningMode : std::uint8_t { enforce, observe, off };

// --- node.partitioning under the modes Observe and Off.

inline constexpr std::string_view kPartitioningOff = "PartitioningOff";

// The mode that applies: an operator that only observes rollouts only observes partitioning as well.
[[nodiscard]] PartitioningMode effective_mode(PartitioningMode mode, const PlannerSettings& settings);

// The plan with a finding in place of each write, and with Events that say so.
[[nodiscard]] Plan observed(Plan plan);

// What is said under Off: that nodes are labelled, and left alone. `labelled`: names of Nodes.
[[nodiscard]] Plan switched_off(const World& world, const std::set<std::string>& labelled);

}  // namespace gso
