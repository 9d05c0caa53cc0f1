// Nodes that need no change and something else: that their profile is verified and recorded, that their marks are
// removed, or that pods are replaced although the node has its target: those that have not read it, and those with a
// fault that only a new pod fixes.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/fleet/pass.h"

namespace gso {

// --- Nodes that load a profile by themselves are verified and recorded. Nodes whose state label or annotation has no
// reason any more are cleaned (node_states.cc).

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
[[nodiscard]] TimerKey loading_timer(std::string_view node, const NodeAssessment& assessment);
// The operator has waited long enough for a node that loads by itself, and `longer` than that, and replaces its pods.
[[nodiscard]] bool loading_expired(const Pass& pass, const std::string& node, const NodeAssessment& assessment,
                                   Duration longer = Duration::zero());

// --- Nodes whose pods must be replaced so that they load the profile that is their target already: they did not load
// it by themselves, or have stopped showing it. They start like the nodes of an edit (starts.cc).

class RolloutView;

using Reloads = std::map<RolloutKey, std::set<std::string>>;
// Machines that only have more GPUs than before are recorded instead; nodes that must not be restarted are reported.
[[nodiscard]] Reloads find_reloads(Pass& pass);

// The machine serves its target with more GPUs than are counted: it is recorded with them, and not restarted. After a
// label has moved, the capacity is no proof: a plugin that did not reload still serves the former profile.
[[nodiscard]] bool has_more_devices(const NodeAssessment& assessment);

// Its pods have certainly read its target, and serve it with fewer GPUs than the machine has had: it is recorded and
// reported (C11 of node/node_step.h), because another restart brings no GPU back. Not a machine that has just joined:
// how many GPUs it has is not known yet, and one restart finds those that its plugin started too early for. Not one
// whose label has moved either, for the reason above.
[[nodiscard]] bool has_read_with_fewer_devices(const NodeAssessment& assessment);

// Why such a node is not restarted now: missing labels, or another obstacle; nullopt: the node can be restarted.
[[nodiscard]] std::optional<Reason> reload_obstacle_of(const NodeAssessment& assessment);
// Why no drifting node of the rollout is repaired now, for people: its gate is closed for repairs as well. Empty: some
// can be, or the gate opens within moments.
[[nodiscard]] std::string repair_stop(const RolloutView& rollout);
// Reports why such a node is not restarted now.
void report_waiting_reload(Pass& pass, const std::string& node, const Reason& why);

// --- Remediation: operand pods with a fault that only a new pod fixes (node/node_phase.h) are deleted once each, with
// growing delays when that does not help. Each attempt is recorded before the pod is deleted.

// The attempts that are due and not recorded yet.
[[nodiscard]] std::vector<RecordedRemediation> due_remediations(Pass& pass);
// Reports stuck pods, and deletes those whose attempt is recorded.
void plan_remediation(Pass& pass);

// How long ago the attempt was recorded. Attempts that are older than FleetRecord::kRemediationsKept count no more.
[[nodiscard]] Duration age_of(const Pass& pass, const RecordedRemediation& attempt);
// Names the timers of these ages, for the attempts of the record.
void run_remediation_timers(Pass& pass);

}  // namespace gso
