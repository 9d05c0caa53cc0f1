// What else in the cluster restarts the plugin's pods, gives out the same GPUs, or cannot see how they are shared: for
// `audit`. Found by names that these tools write themselves.
#pragma once

#include <vector>

#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// After index.refresh().
[[nodiscard]] std::vector<Finding> neighbours(const World& world, const FleetIndex& index);

}  // namespace gso
