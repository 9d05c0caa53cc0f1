// When a deferred node may start again, once it is idle.
#pragma once

#include <optional>
#include <string>

#include "reconcilers/fleet/pass.h"

namespace gso {

// The workloads of the node have had their turn for its target (Deferral): it starts once it is idle.
[[nodiscard]] bool has_had_turn(const Pass& pass, const std::string& node);
// Not before the time in its annotation, if a person uncordoned it. A time that is further away than idleTimeout counts
// as over: the clock that wrote it was ahead, or idleTimeout was longer then. nullopt: the node has no deferral, or it
// cannot be read.
[[nodiscard]] std::optional<WallTime> deferred_until(const Pass& pass, const std::string& node);

}  // namespace gso
