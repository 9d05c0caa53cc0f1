// When a deferred node may start again, once it is idle.
#pragma once

#include <optional>
#include <string>

#include "reconcilers/fleet/pass.h"

namespace gso {

// The workloads of the node have had their turn for its target (Deferral): it starts once it is idle.
[[nodiscard]] bool has_had_turn(const Pass& pass, const std::string& node);
// Not before the time in its annotation, if a person uncordoned it: by the wall clock as it goes now. A time that is
// further away than idleTimeout counts as over, unless this process has seen the deferral begin. nullopt: the node has
// no deferral, or it cannot be read.
[[nodiscard]] std::optional<WallTime> deferred_until(const Pass& pass, const std::string& node);

// Names the timers of these times, for the nodes that wait for them.
void run_deferral_timers(Pass& pass);

}  // namespace gso
