// Switches that people have set, and that nothing else shows: those without a value, and pauses that stop no node yet.
// Pure functions.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// `gpusharing.dev/hold` and `gpusharing.dev/paused` without a value (`kubectl annotate node n1 gpusharing.dev/hold=`)
// have no effect, which their author might not expect: a warning, HoldIgnored or PausedIgnored. "false" and its like
// mean no, and every other value has an effect (model/switch_value.h).
[[nodiscard]] std::optional<Finding> ignored_hold(const Node& node);

// For all Nodes, and for the ConfigMaps that plugins mount; sorted by kind and name.
[[nodiscard]] std::vector<Finding> ignored_switches(const World& world);

// Behind "the policy ".
inline constexpr std::string_view kIsPaused = "is paused (spec.rollout.paused): edits are not rolled out";

// Policies that are paused while all of their nodes run what they should: no rollout and no node shows that the next
// edit will not be rolled out. For information, PolicyPaused; sorted by name.
[[nodiscard]] std::vector<Finding> idle_pauses(const World& world, const FleetIndex::Impl& index);

}  // namespace gso
