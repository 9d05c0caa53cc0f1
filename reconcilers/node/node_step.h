// The next step of a node in a change, or what it waits for: only this function decides it.
//
// "Leaves the change" means: one patch removes what the change left on the node (its annotation, label, cordon and
// autoscaler annotations). "First" and "last" pods: the two groups in the order of replace_order.h.
//
// A node without a change. The code has one function per row and calls them in this order (assess_rows.cc); the first
// row that applies decides its phase, and node_states.cc and rollout/ act on it. N1, N2 and N3 come before the rows of
// a change: they apply to a node with a change as well.
//   row when the node …                    then
//   N1  has no plugin with profiles        Unmanaged. What a change left there is removed after two minutes (at once
//                                          if nos took the node over), but not while a holder holds the node, a plugin
//                                          pod still runs there, or its pods cannot be read
//   N2  has no baseline that can be read   Unrecorded. No action on the node
//   N3  has a change that cannot be read,  Held. No action; a finding says how to release the node
//       or labels whose owner is unknown
//       (gpusharing.dev/owned)
//   N4  has no valid target: DRA serves    Blocked
//       its GPUs, its policy's key does
//       not exist, or no pod can start
//       with its label, default or profile
//   N5  loaded a profile by itself (it     Verifying. Recorded once it shows the profile and its pods have certainly
//       joined, or its label or pods were  read the text. Otherwise it starts like a node of N8: after verifyTimeout,
//       changed by somebody else)          two minutes after its label was changed, or earlier if it joined and its
//                                          pods serve without having read the text, or if a creation time that lies in
//                                          the future is all that makes its pods newer than the text. On a product
//                                          where no other node has shown the revision, one such node starts after the
//                                          other. Blocked or Held as in N8, but an obstacle does not block a node that
//                                          shows the profile
//   N6  gets new pods by RollingUpdate,    FollowingDaemonSet. A warning if no pod is replaced for verifyTimeout
//       and runs another profile so far
//   N7  runs its target                    UpToDate, or as in N8 if a taint keeps its plugin away. If it does not show
//                                          the target for verifyTimeout, it starts like a node of N8, without a canary
//                                          or an approval; not if an obstacle would block that, RollingUpdate has yet
//                                          to replace its pods (so in N5), it is deferred, or has a baseline_excuse()
//                                          (node_phase.h). If only devices are missing: reported, and nothing is
//                                          restarted
//   N8  needs a change: another text, a    Blocked by an obstacle; Held by a holder, or by a deferral that cannot be
//       label that a policy wants, a new   read; otherwise Pending. An obstacle is named before a holder, because it
//       template under OnDelete, or pods   remains when the holder is done. rollout/ starts Pending nodes that are
//       that can have read a text that     Ready, when gate, canary and budgets allow it. A deferred node starts once
//       it was taken back                     is idle (if a person uncordoned it, not before the time in
//                                          gpusharing.dev/deferred); a new target, a retry, or a policy that evicts now
//                                          ends the deferral. Under DaemonSetRestart a node
//                                          starts only for a label, or if the restart did not reach it. A node that
//                                          shows an edit before its change to it is named (LoadedUngated), and proves
//                                          nothing
//
// A node with a change. The code has one function per row and calls them in this order; the first row that applies
// decides:
//   row when …                             then
//   C1  a holder holds the node            Held. No action; afterwards every deadline starts again, also for an
//                                          operator that is started later: the record has when the hold ended
//       somebody uncordoned the node, and  The annotation forgets the operator's cordon, once: a later cordon is
//       the change has failed or is        somebody else's, and stays
//       touched
//   C2  the change has failed              If the node shows its profile nevertheless: leaves the change (Recovered).
//                                          Otherwise no action here: a new target, a newer template under OnDelete, or
//                                          a retry (gpusharing.dev/retry of the policy) makes it Pending again, and the
//                                          next change replaces this one
//   C3  the change is untouched, and a     The node leaves the change: it is uncordoned and has the phase of a node
//       new target, an obstacle or a       without a change. The same if all pods are replaced, only the label remains
//       stop appeared, or the node would   to be written, and an obstacle prevents that, or if the change has only
//       be up to date without the change   moved the label, and somebody has moved it on: then N5 to N8 apply. If
//                                          max-mode is Observe, nothing is written, and a finding names the cordon
//   C4  the change is touched, something   Nothing more is deleted or written; a finding says why
//       remains to be done, and the target
//       is invalid, an obstacle appeared,
//       or KAI uses the GPUs
//   C5  a new target appeared (or under    The pods are listed again, also new ones that may have read the former text,
//       OnDelete, before the new pods are  twice --clock-difference and a second after the edit; then C6. If only the
//       Ready, another template), and      label remains, and that would wait for workloads: as in C7
//       listed pods or the label remain
//   C6  the change is untouched, or first  Waits for the workloads or evicts them, if losing these pods disturbs them;
//       pods or the label remain           then marks the change as touched, writes the label and deletes the first
//                                          pods. If the change is untouched and a person uncordons the node,
//                                          idleTimeout passes, or its workloads had their turn before: leaves the
//                                          change and is deferred. Nothing is deleted while the node is NotReady
//   C7  the same, but all listed           Pods that cannot have read the new text are listed, not before the time of
//       pods are gone, and the new ones    C5, and only while KAI uses no GPU of the node and the node is
//       are not Ready with what they read  Ready; then C6. If that would wait for workloads (WaitForIdle), it leaves
//                                          the change as in C10 once its pods serve, however late; but if only its
//                                          plugin serves for verifyTimeout, they are listed
//   C8  first pods are still terminating   Waits; Failed after verifyTimeout
//   C9  last pods remain                   Deletes them once the node, MPS and the first pods are Ready; Failed after
//                                          verifyTimeout
//   C10 all pods are replaced, Ready, and  The node leaves the change (Verified) with the revision that these pods have
//       have shown what they read for the  read. If that is no longer the target, N8 applies
//       status lag                         If the text was edited and edited back since, pods that may have read the
//                                          one in between are listed again. Unproven, with no revision, if it serves
//                                          and the text of its change is not known any more, or its target has moved
//                                          on and the pods can have read another text as well
//   C11 verifyTimeout has passed           Waits while the node serves with Ready pods and its labels are missing.
//                                          Fewer devices than GFD counts: leaves the change (VerifiedDegraded). More
//                                          than recorded: leaves the change. Pods older than the text: listed again.
//                                          Otherwise Failed, and autoscalers are allowed to remove the node
//   C12 the label was written, and the     The pods are listed; then C6
//       pods did not reload in two minutes
//
// The phase of a change: Draining while it is untouched (C3, C6), Restarting while listed pods or the label remain
// (C4 to C9), then Verifying (C7, C10 to C12).
// Touched: the operator has marked it so, in a write before its first deletion or with the label. What others delete
// does not count: the pods that run instead are listed when the change becomes touched. A label that a person wrote,
// and that is the one of the change, counts as written; so does a change that lists no pod and writes no label. An
// annotation of an earlier release has no such mark: then a listed pod that is gone or terminating counts as deleted
// by the operator, but not while a change for a policy's label has not written it, nor an MPS pod beside others if the
// node has another key than the change was begun for.
// If an untouched change ends that replaced a failed one, the node is Failed again, with the cordon and the annotation
// of that change. If it ends although its target remains, after the node was cordoned for its workloads, it is
// deferred: these have had their turn for this revision. Where the policy evicts them, only idleTimeout or a person
// ends a turn: a stop or an obstacle does not defer the node.
// A touched node goes on, also if a person uncordons it or its policy is deleted: the policy that governs the node now
// decides, or the one of the change if it precedes that one. The same applies to an untouched node, if the labels that
// select it for the policy of the change are missing, and none has another value (node_labels.h).
// Stop: paused, aborted, undone, Observe, Approve without approval (not for a repair of drift, N7), outside its
// windows, MaxFailures; or an idle node needs the slot of this one, which only waits for its workloads
// (rollout/slots.h). Not a stop: settling, GPUOperatorUpdating, a key that is not projected yet, a canary that
// stopped showing its profile, a full budget. Holder: a person (gpusharing.dev/hold), a driver upgrade, a MIG change,
// a remediation system. Obstacle: the first check of the chain that blocks the node (reconcilers/checks/chain.cc).
// Deadlines: idleTimeout counts from the first wait for workloads, verifyTimeout from the end of C6; a new list starts
// them again, and so does a node that was NotReady when it is Ready again. After a restart of the operator they count
// from the times in the cluster: idleTimeout from when the pods were listed; verifyTimeout from the creation of the
// newest new pod or, if none has come, from when the pods were listed, plus idleTimeout if the node waited for its
// workloads; none of them before a hold has ended (C1), or the node was seen Ready again.
//
// Beside these rows: pods with a fault that only a new pod fixes (rollout/repairs.h), sharing labels that the
// operator owns and labels of nodes that left their policy (registry.cc), and the mark for KAI (node_labels.h). A node
// in a change that is lost while its MPS daemon terminates is reported (MPSUncleanExit), whichever row applies after
// C1.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "reconcilers/model/plan_draft.h"
#include "reconcilers/node/node_patch.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/reasons/reason.h"

namespace gso {

// How long plugin and GFD may take to reload by themselves after a label changed, before their pods are replaced.
inline constexpr Duration kReloadGrace = std::chrono::minutes(2);

// KAI's use of a node's GPUs, if it prevents a restart into replicas (S8).
struct KaiHindrance {
  bool certain = false;  // KAI shares GPUs of the node; false: not known yet.
  std::string why;
};
// The finding about the node while it is not restarted for that reason (node_step_parts.cc).
[[nodiscard]] Finding finding_of(const std::string& node, const KaiHindrance& hindrance);

// The inputs of a step. All referenced objects outlive the call.
struct StepInput {
  const NodeView& view;
  const SharingPolicy& policy;  // The policy that governs the node.
  // The profile of change.to, if the node has another target now; null: it is unknown, or new pods can have read
  // another.
  ProfilePtr begun_for;
  std::optional<Reason> stop;  // Why a node that only waits is uncordoned and queued again (C3).
  // Why it waits for its workloads, one of the Blocked reasons, which names them: by the last list of its consumers.
  std::optional<Reason> blocked_by_pods;
  std::function<std::optional<KaiHindrance>()> kai_hinders;  // Asked only before pods are replaced.
  // Since when nobody holds the node any more, if somebody did during this change (C1): no stored time starts a
  // deadline before that.
  std::optional<WallTime> released{};
};

// The row of the second table above that applies to a node in a change.
enum class StepRow : std::uint8_t {
  none,  // The node waits for C10, or for a deadline of C11 or C12.
  c1,
  forget_cordon,  // The line between C1 and C2.
  c2,
  c3,
  c4,
  c5,
  c6,
  c7,
  c8,
  c9,
  c10,
  c11,
  c12,
};

struct Step {
  StepRow row = StepRow::none;
  std::string last_wait_for;  // Of C9: what the last pods wait for while the node is Ready; empty: nothing.
  // From C7 on: when verifyTimeout began, by the times in the cluster. An operator that has seen all of the change
  // began to count no later.
  std::optional<WallTime> verifying_since{};
  Plan plan;            // Actions, findings, timers, the time of the next look, whether consumers must be listed.
  bool evicts = false;  // Evict its consumers now, as far as their jobs allow (drain.h).
  bool done = false;    // The change ends: pods that the kubelet has rejected meanwhile can be removed.
};

// The node has a change (facts.change).
[[nodiscard]] Step step(const StepInput& input);
// For StepInput::begun_for. `record` may be null.
[[nodiscard]] ProfilePtr profile_begun_for(const NodeView& view, const FleetRecord* record, ProfileCache& profiles);

// Keeps the timers of a change running without a step, for a pass that has reached its limit. `released`: as in
// StepInput.
void keep_timers(const NodeView& view, const RolloutSpec& rollout, std::optional<WallTime> released, Ages& ages);

// When a deadline of a change started that has a stored start. `released`: as in StepInput.
[[nodiscard]] WallTime deadline_start(WallTime stored, std::optional<WallTime> released);

// The timer of a change: `draining`, `reloading`, `not_ready` (while the node is NotReady; no other deadline of the
// change runs meanwhile), `unchanged` (since when the target text of the node has been in its key, as far as the
// operator has seen it), or one that a new list of pods restarts: `verifying`, `shown`.
[[nodiscard]] TimerKey change_timer(Timer timer, const std::string& node, const NodeChange& change);
// For people.
inline constexpr std::string_view kNotReadyInChangeText =
    "the node is NotReady during its change: it keeps its slot, no pod of it is deleted, and its deadlines start again "
    "when it is Ready";

}  // namespace gso
