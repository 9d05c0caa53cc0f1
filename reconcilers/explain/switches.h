// Switches that people have set, by annotation or label, to a value without a meaning. Pure functions.
#pragma once

#include <optional>
#include <vector>

#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// `gpusharing.dev/hold` and `gpusharing.dev/paused` are set if their value is "true"; absent and "false" mean no. Any
// other value ("yes", "True", "1") has no effect, which its author does not expect: a warning, HoldIgnored or
// PausedIgnored.
[[nodiscard]] std::optional<Finding> ignored_hold(const Node& node);

// For all Nodes, and for the ConfigMaps that plugins mount; sorted by kind and name.
[[nodiscard]] std::vector<Finding> ignored_switches(const World& world);

}  // namespace gso
