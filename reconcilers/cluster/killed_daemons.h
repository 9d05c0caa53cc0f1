// MPS control daemons that were killed instead of ending by themselves: MPSUncleanExit.
#pragma once

#include "reconcilers/model/snapshot.h"

namespace gso {

// How long an unclean exit is reported.
inline constexpr Duration kUncleanExitReported = std::chrono::hours(1);

// Keeps World::killed_daemons up to date from now on: a pod's last state arrives just before the watch event DELETED,
// which can be before any pass. `world` outlives its stores' listeners. Call it once, before the stores fill.
void follow_killed_daemons(World& world);

}  // namespace gso
