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
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/rollout/stops.h"

namespace gso {

// --- Whether the inputs of an installation have settled: its ConfigMap, its DaemonSets, and what its ClusterPolicy
// announces for them.

// Runs while its ClusterPolicy announces what they do not have, and both stay as they are.
[[nodiscard]] TimerKey differing_timer(const PluginInstallation& installation);
// The DaemonSets have differed for longer than that: which DaemonSets, from what, and how to continue. Empty: they have
// not.
[[nodiscard]] std::string lasting_difference(Pass& pass, const PluginInstallation& installation);
// Runs while the inputs of an installation are unchanged: what its pods would load, by signature.
[[nodiscard]] TimerKey settled_timer(const Pass& pass, std::size_t installation);
// Runs while a rollout waits for its inputs to settle.
[[nodiscard]] TimerKey unsettled_timer(const RolloutKey& key);

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

// What gates ask about a rollout, of a profile or of a template to standalone MPS daemons.
struct GateSubject {
  Pass& pass;
  const SharingPolicy& policy;
  Switches switches;                      // Those in effect.
  bool anew = false;                      // Its SharingRollout is of an earlier attempt.
  std::function<std::string()> approval;  // What is said while nobody has approved it.
  std::function<std::string()> settling;  // Why its inputs have not settled; empty: they have.
  const RolloutView* profile = nullptr;   // Null: of a template, which only some of the gates concern.
};
// The first gate that is closed for the rollout of a template. An aborted rollout has ended, whatever else holds it.
[[nodiscard]] GateState first_closed_gate(const GateSubject& of_template);

// Gate::aborted, if somebody has aborted the rollout; else open. An aborted rollout has ended, whatever else holds it.
[[nodiscard]] GateState closed_by_abort(const RolloutView& rollout);
// How long the ConfigMap of the rollout and its DaemonSets must not have changed before a node starts.
[[nodiscard]] Duration settle_time(const RolloutView& rollout);
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

// --- Mechanism DaemonSetRestart (daemonset_restart.cc): if only new pods load a change, the operator restarts the
// DaemonSets, whose controller then replaces the pods at its own pace. A label is still changed node by node.

// Plans the restarts that the rollout needs. The template names the revisions and the edit that it was restarted for,
// so that each DaemonSet is restarted once for them. True: the nodes wait for their DaemonSets, and the caller must
// start only nodes that need a label. False: the mechanism is another one, or the DaemonSets have been restarted and
// these nodes have been left behind for longer than verifyTimeout: they are restarted one by one.
[[nodiscard]] bool restart_daemonsets(const RolloutView& rollout);
// Why the DaemonSets that mount the rollout's ConfigMap must not be restarted now, for people; empty: they can be, or
// another mechanism applies. Their controller replaces the pods of every node, so the whole fleet of the ConfigMap
// decides, not only the nodes of the rollout.
[[nodiscard]] std::string restart_obstacle(const RolloutView& rollout);

}  // namespace gso
