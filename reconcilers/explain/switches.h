// What people have set and nothing else shows: switches without a value, pauses that stop no node yet, and policies of
// equal priority for the same nodes. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// `gpusharing.dev/hold` and `gpusharing.dev/paused` without a value (`kubectl annotate node n1 gpusharing.dev/hold=`)
// have no effect, which their author might not expect: a warning, HoldIgnored or PausedIgnored. "false" and its like
// mean no, and every other value has an effect (model/policy.h).
[[nodiscard]] std::optional<Finding> ignored_hold(const Node& node);

// For all Nodes, and for the ConfigMaps that plugins mount; sorted by kind and name.
[[nodiscard]] std::vector<Finding> ignored_switches(const World& world);

// A pause of a policy, or of a ConfigMap that a plugin mounts, while no node waits for its end: no rollout and no node
// shows that the next edit will not be rolled out.
struct IdlePause {
  ObjectRef object;
  std::string text;    // Behind "the policy " or "the ConfigMap ".
  std::string resume;  // The command that ends it.
};
// Sorted by kind and name.
[[nodiscard]] std::vector<IdlePause> idle_pauses(const World& world, const FleetIndex::Impl& index);
// The same for information: PolicyPaused, ConfigMapPaused.
[[nodiscard]] std::vector<Finding> idle_pause_findings(const World& world, const FleetIndex::Impl& index);

// Policies that select nodes which another policy of the same priority governs: which one does was not decided by a
// number that somebody chose. For information, PolicyOverlap; sorted by name.
[[nodiscard]] std::vector<Finding> undecided_overlaps(const World& world, const FleetIndex::Impl& index);

}  // namespace gso
