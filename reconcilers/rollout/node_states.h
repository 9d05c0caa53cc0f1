// Nodes that load a profile by themselves are verified and recorded. Nodes whose state label or annotation has no
// reason any more are cleaned.
#pragma once

#include <set>
#include <string>

#include "reconcilers/fleet/pass.h"

namespace gso {

// Names the timers of nodes that load a profile by themselves (recorded_timers.h).
void run_loading_timers(Pass& pass);
// The same while the record cannot be read: it is unknown which nodes these are, so the timer of each node runs from
// when it has got its target. A label that moves meanwhile can come too soon after an edit of its new key.
void run_loading_timers_of_all(Pass& pass);
// Returns the nodes that it records: their patch also removes stale states.
[[nodiscard]] std::set<std::string> plan_self_loaded_nodes(Pass& pass);
// Writes Blocked, and removes stale states. `recorded`: nodes that have their patch of this pass already.
void plan_node_states(Pass& pass, const std::set<std::string>& recorded);
void plan_paused_relabels(Pass& pass);  // Nodes that a driver upgrade has drained.

// is_from_the_future() of the node's pods.
[[nodiscard]] bool has_pod_from_the_future(const Pass& pass, const std::string& node, const NodeAssessment& assessment);
// The pods of a node that loaded its profile by itself have certainly read the text that its key has now. Matching
// labels are necessary for that, never sufficient: an edit might change no label (S11).
[[nodiscard]] bool must_have_read(const Pass& pass, const std::string& node, const NodeAssessment& assessment);

// Runs while a node loads a profile by itself and does not show it.
[[nodiscard]] TimerKey loading_timer(const std::string& node, const NodeAssessment& assessment);
// The operator has waited long enough for a node that loads by itself, and `longer` than that, and replaces its pods.
[[nodiscard]] bool loading_expired(const Pass& pass, const std::string& node, const NodeAssessment& assessment,
                                   Duration longer = Duration::zero());

}  // namespace gso
