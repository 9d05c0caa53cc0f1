// MPS control daemons that were killed instead of ending by themselves: MPSUncleanExit.
#pragma once

#include "reconcilers/model/snapshot.h"

namespace gso {

// How long such an end is told; by then somebody has looked, or the node works.
inline constexpr Duration kUncleanExitTold = std::chrono::hours(1);

// Keeps World::killed_daemons up to date from now on: a pod's last state comes as it goes (the watch's DELETED), and is
// gone from the store in the same moment. `world` outlives its stores' listeners. Call it once, before the stores fill.
void follow_killed_daemons(World& world);

}  // namespace gso
