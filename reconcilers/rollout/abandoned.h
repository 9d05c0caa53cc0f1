// Nodes in a change that the operator does not manage any more: no plugin DaemonSet selects them, the plugin runs
// without profiles, or nos has taken them over. What the change left there is removed once that is certain.
#pragma once

#include <chrono>

#include "reconcilers/fleet/pass.h"

namespace gso {

// How long a node must have been without a plugin with profiles before the marks of a change are removed: longer than
// the GPU Operator or Helm need to create a DaemonSet again, or NFD to write its labels again.
inline constexpr Duration kAbandonGrace = std::chrono::minutes(2);

void plan_abandoned(Pass& pass);

}  // namespace gso
