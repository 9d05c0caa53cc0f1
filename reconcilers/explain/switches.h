// Switches that people have set, by annotation or label, to a value that means nothing. Pure functions.
#pragma once

#include <optional>
#include <vector>

#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// `gpusharing.dev/hold` and `gpusharing.dev/paused` count when they are "true"; absent and "false" mean no. Any other
// value ("yes", "True", "1") does nothing, which its author does not expect: a warning, HoldIgnored or PausedIgnored.
[[nodiscard]] std::optional<Finding> ignored_hold(const Node& node);

// Of all Nodes, and of the ConfigMaps that plugins mount; by kind and name.
[[nodiscard]] std::vector<Finding> ignored_switches(const World& world);

}  // namespace gso
