// When a deferred node may start again.
#pragma once

#include <optional>
#include <string>

#include "reconcilers/fleet/pass.h"

namespace gso {

// Not before the time in its annotation. A time that is further away than idleTimeout counts as over: the clock that
// wrote it was ahead, or idleTimeout was longer then. nullopt: the node has no deferral, or it cannot be read.
[[nodiscard]] std::optional<WallTime> deferred_until(const Pass& pass, const std::string& node);

}  // namespace gso
