// The gates of a rollout: what prevents it from starting nodes, and the switches that people have set. All callers read
// the same answer, computed once per pass (rollout_view.h), so that the reported reason is the one that applies.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/fleet/pass.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// --- Stops that outlive their objects: rollout switches in the record, and deleted policies (stops.cc).

// The switches in effect for one revision of a rollout: those of its SharingRollout combined with the record.
struct Switches {
  bool paused = false;
  bool approved = false;
  bool aborted = false;
  bool undone = false;
};
// `rollout`: its object, or null. An abort and an undo apply if the object or the record has them. A pause in the
// record applies if the object is gone; an approval in the record applies only if the CRDs are not installed any more.
[[nodiscard]] Switches switches_of(const Pass& pass, const RolloutKey& key, const std::string& target,
                                   const SharingRollout* rollout);
// The recorded switches of a rollout whose object is gone: the new object is created with them.
[[nodiscard]] std::optional<RecordedSwitches> switches_to_restore(const Pass& pass, const RolloutKey& key,
                                                                  const std::string& target);
// The switches that the record must hold now: an entry ends when another valid revision of its key is the target, when
// a new attempt begins, or by `rollout start`.
[[nodiscard]] std::vector<RecordedSwitches> update_switches(const Pass& pass, const PolicyUpdate& policies);

// Installs the operator's CRDs, from its repository or an unpacked release.
inline constexpr std::string_view kInstallCrds = "kubectl apply --server-side -f crds/";
// The command that lifts the stops of all deleted policies.
[[nodiscard]] std::string forget_policies_command(const PlannerSettings& settings);

// Whether a switch of this rollout is still in effect: then its object is not history.
[[nodiscard]] bool holds_a_switch(const Pass& pass, const SharingRollout& rollout);
// Another valid revision, or template, has replaced this one, or its policy is deleted and forgotten. While the policy
// governs no node, its own key and the ConfigMap's text decide: nodes without their labels, a wrong selector or missing
// DaemonSets end no attempt and clear no switches, nor does an invalid text.
[[nodiscard]] bool is_left(const Pass& pass, const RolloutKey& key, std::string_view revision);

// Events for what was just deleted, and findings for as long as its stops are in effect.
void report_gone_policy(Pass& pass, const std::string& name);
void report_gone_crds(Pass& pass);
void find_held_policies(Pass& pass);
// The reason of the finding that the annotation gpusharing.dev/forget-policies is not a time.
inline constexpr std::string_view kForgetUnreadable = "ForgetPoliciesUnreadable";

// --- Whether the inputs of an installation have settled: its ConfigMap, its DaemonSets, and what its ClusterPolicy
// announces for them.

// How long the DaemonSets can differ from their ClusterPolicy before the operator stops treating that as an update by
// the GPU Operator.
inline constexpr Duration kDifferencePatience = std::chrono::minutes(2);
// Runs while its ClusterPolicy announces what they do not have, and both stay as they are.
[[nodiscard]] TimerKey differing_timer(const PluginInstallation& installation);
// The DaemonSets have differed for longer than that: which DaemonSets, from what, and how to continue. Empty: they have
// not.
[[nodiscard]] std::string lasting_difference(Pass& pass, const PluginInstallation& installation);
// Runs while the inputs of an installation are unchanged: what its pods would load, by signature.
[[nodiscard]] TimerKey settled_timer(const Pass& pass, std::size_t installation);

// In the order in which they are reported: the first closed gate.
enum class Gate : std::uint8_t {
  open,
  // --- Switches that people have set.
  observe,   // Mode Observe, of the policy or of the operator.
  paused,    // The policy, its ConfigMap or the rollout.
  aborted,   // The rollout.
  undone,    // The rollout, by `rollout undo`.
  approval,  // Mode Approve, and no person has approved yet.
  // --- Reasons against this revision, or against starting now.
  view_stale,             // A watch does not deliver: what people have set since is unknown.
  gpu_operator_updating,  // The DaemonSets are about to change, or differ from their ClusterPolicy.
  max_failures,           // Too many nodes failed on this revision, now or before.
  canary_drifting,        // A canary has stopped showing its profile. It is restarted anyway.
  mechanism_unusable,     // Mechanism DaemonSetRestart would also restart nodes that must not restart now.
  key_not_projected,      // The kubelets might not have the key's text yet.
  outside_window,         // No maintenance window is open.
  settling,               // The inputs have just changed.
  new_attempt,            // The SharingRollout of an earlier attempt is replaced first: the next pass opens the gate.
};

// All that a gate means while it is closed: one row of a table in gates.cc. Every gate prevents starts.
struct GateRow {
  Gate gate;
  std::string_view reason;  // The condition's, CamelCase; empty for an open gate.
  std::string_view phase;   // Of the SharingRollout; empty: Progressing, as if the gate were open.
  // It also prevents restarts of nodes that stopped showing the revision that they have loaded.
  bool holds_repairs;
  // Nodes that only wait in their change are uncordoned and queued again.
  bool backs_out;
  // It explains a standstill even if no node is left to start: a person's switch, or failures.
  bool stops_all;
  // Closed until a person, a calendar or another controller opens it: nodes that wait for it get a finding. The other
  // gates open by themselves within minutes, and mode Observe promises no restart.
  bool needs_attention;
  // `audit` reports it if nodes wait: a person must act, and has not been asked for an approval.
  bool audited;
};
[[nodiscard]] const GateRow& row_of(Gate gate);
[[nodiscard]] inline std::string_view reason_of(Gate gate) {
  return row_of(gate).reason;
}

// The revision failed, or a person ended its rollout: only a retry or another profile continues.
[[nodiscard]] inline bool is_stopped(Gate gate) {
  return gate == Gate::max_failures || gate == Gate::aborted || gate == Gate::undone;
}

struct GateState {
  Gate gate = Gate::open;
  std::string message;  // For people.
  [[nodiscard]] bool is_open() const { return gate == Gate::open; }
  [[nodiscard]] std::string reason() const { return std::string(reason_of(gate)); }
  [[nodiscard]] Reason why() const { return {reason_of(gate), message}; }  // While it is closed.
};

class RolloutView;

// The rollout of a template to standalone MPS daemons, as far as gates ask about it: the gates that people close, the
// windows, and these.
struct TemplateRollout {
  Pass& pass;
  const SharingPolicy& policy;
  Switches switches;                      // Those in effect.
  bool anew = false;                      // Its SharingRollout is of an earlier attempt.
  std::function<std::string()> approval;  // What is said while nobody has approved it.
  std::function<std::string()> settling;  // Why the template has not settled; empty: it has.
};
// The first closed gate. An aborted rollout has ended, whatever else holds it.
[[nodiscard]] GateState first_closed_gate(const TemplateRollout& rollout);

// What a caller wants to do. GateRow says which gates prevent it.
enum class GateUse : std::uint8_t {
  start,            // A change of the next node.
  repair,           // A restart of a node that stopped showing the revision that it has loaded.
  wait,             // A node that only waits in its change: it is uncordoned and queued again.
  wait_for_repair,  // The same of a node in such a restart: only by a gate that holds repairs.
};

// How long the ConfigMap of the rollout and its DaemonSets must not have changed before a node starts.
[[nodiscard]] Duration settle_time(const RolloutView& rollout);

// The first closed gate, for that use.
[[nodiscard]] GateState first_closed_gate(const RolloutView& rollout, GateUse use);
// Gate::aborted, if somebody has aborted the rollout; else open. An aborted rollout has ended, whatever else holds it.
[[nodiscard]] GateState closed_by_abort(const RolloutView& rollout);
// While Gate::settling is the closed gate: when the inputs will have settled, unless they change again. nullopt:
// another gate is closed, or none, or a deletion is waited out.
[[nodiscard]] std::optional<WallTime> settled_at(const RolloutView& rollout);
// The first gate that the spec of a policy closes, always or outside its windows; open: it closes none.
[[nodiscard]] Gate first_gate_in_spec(const SharingPolicy& policy);

enum class PausedBy : std::uint8_t { nobody, policy, config_map, rollout };
struct Pause {
  PausedBy by = PausedBy::nobody;
  std::string why;  // For people.
};
// The first pause that applies to the rollout, in the order of the gates.
[[nodiscard]] Pause pause_of_rollout(const RolloutView& rollout);

}  // namespace gso
