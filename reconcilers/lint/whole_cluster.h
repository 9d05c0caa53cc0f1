// Every check of a whole cluster at once: `lint` of manifests.
#pragma once

#include <vector>

#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// What preflight finds about DaemonSets, ConfigMaps and ClusterPolicies, about each Node (by name), what DRA offers
// on it beside the plugin, and what is wrong with SharingPolicies beside them.
[[nodiscard]] std::vector<Finding> check_cluster(const World& world, const PlannerSettings& settings);

}  // namespace gso
