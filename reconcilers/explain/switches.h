// Switches that people have set, by annotation or label, without a value. Pure functions.
#pragma once

#include <optional>
#include <vector>

#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// `gpusharing.dev/hold` and `gpusharing.dev/paused` without a value (`kubectl annotate node n1 gpusharing.dev/hold=`)
// have no effect, which their author might not expect: a warning, HoldIgnored or PausedIgnored. "false" and its like
// mean no, and every other value has an effect (model/switch_value.h).
[[nodiscard]] std::optional<Finding> ignored_hold(const Node& node);

// For all Nodes, and for the ConfigMaps that plugins mount; sorted by kind and name.
[[nodiscard]] std::vector<Finding> ignored_switches(const World& world);

}  // namespace gso
