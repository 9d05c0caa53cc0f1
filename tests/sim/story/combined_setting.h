// What a Combination means for a fleet: its nodes, the operator's settings, and the budgets that it is judged by.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "tests/reconcilers/combinations/combinations.h"
#include "tests/sim/fleet/node_agent.h"
#include "tests/sim/story/invariants.h"
#include "tests/sim/story/operator_control.h"

namespace gso::sim {

// Of the maintenance window.
inline constexpr k8s::Duration kPeriod = std::chrono::minutes(20), kOpen = std::chrono::minutes(8);
// idleTimeout and verifyTimeout.
inline constexpr k8s::Duration kPatience = std::chrono::minutes(4);

// Out of service since before the installation, where a combination has them.
inline constexpr const char *kBroken = "a100-05", *kCordoned = "a100-06";

// Four of one model and two of another, kBroken and kCordoned; `old_drift`: four more of the second model under a key
// of their own.
[[nodiscard]] std::vector<NodeSpec> nodes_of(const test::Combination& what);
[[nodiscard]] OperatorSettings settings_of(const test::Combination& what);
// spec.rollout of the policy.
[[nodiscard]] nlohmann::json tuning_of(const test::Combination& what);
// S1: the budgets of the fleet and of each group, percents rounded up. S2: whether pods may be evicted.
[[nodiscard]] InvariantOptions judged_by(const test::Combination& what);

}  // namespace gso::sim
