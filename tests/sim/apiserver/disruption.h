// What the disruption controller keeps in the status of PodDisruptionBudgets.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tests/sim/apiserver/storage.h"

namespace gso::sim {

// The status that a budget should have, given the pods there are. Pods that an eviction has spent stay in
// disruptedPods until they are gone.
[[nodiscard]] nlohmann::json budget_status(const nlohmann::json& budget, const Bucket& pods, k8s::WallTime now);

}  // namespace gso::sim
