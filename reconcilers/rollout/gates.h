// The gates of a rollout: what prevents it from starting nodes. All callers read the same answer, computed once per
// pass (rollout_view.h), so that the reported reason is the one that applies.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/rollout/stops.h"

namespace gso {

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
