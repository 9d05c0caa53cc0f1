// The next step of a node in a change, or what it waits for: only this function decides it.
//
// "Leaves the change" means: one patch removes what the change left on the node (its annotation, label, cordon and
// autoscaler annotations). "First" and "last" pods: the two groups in the order of replace_order.h.
//
// A node without a change. The code has one function per row and calls them in this order (assess_rows.cc); the first
// row that applies decides its phase, and node_states.cc and rollout/ act on it. N2, N3 and N1 come before the rows of
// a change: they apply to a node with a change as well.
//   row when the node …                    then
//   N2  has no plugin with profiles        Unmanaged. What a change left there is removed after two minutes (at once
//                                          if nos took the node over)
//   N3  has no baseline yet                Unrecorded. No action
//   N1  has a change that cannot be read   Held. No action; a finding says how to release the node
//   N4  has no valid target, or one that   Blocked
//       no node of its kind can run
//   N5  loaded a profile by itself (it     Verifying. Recorded once it shows the profile and its pods have certainly
//       joined, or its label or pods were  read the text; otherwise restarted (N8). Blocked or Held as in N8, although
//       changed by somebody else)          nothing need be restarted
//   N6  gets new pods by RollingUpdate,    FollowingDaemonSet
//       and runs another profile so far
//   N7  runs its target                    UpToDate, or as in N8 if a taint keeps its plugin away. If it stops showing
//                                          the target for long enough, N8 applies
//   N8  needs a change: another text, a    Blocked by an obstacle; Held by a holder, or by a deferral that cannot be
//       label that a policy wants, or a    read; otherwise Pending. An obstacle is named before a holder, because it
//       new template under OnDelete        remains when the holder is done
//
// A node with a change. The code has one function per row and calls them in this order; the first row that applies
// decides:
//   row when …                             then
//   C1  a holder holds the node            Held. No action; afterwards every deadline starts again (if the operator is
//                                          restarted meanwhile, deadlines count from the times in the annotation)
//       somebody uncordoned the node, and  The annotation forgets the operator's cordon, once: a cordon that comes
//       later the change has failed or is        is somebody else's, and stays touched
//   C2  the change has failed              If the node shows its profile nevertheless: leaves the change (Recovered).
//                                          Otherwise no action here: a new target, or a retry (gpusharing.dev/retry of
//                                          the policy), makes it Pending again, and the next change replaces this one
//   C3  the change is untouched, and a     The node leaves the change: it is uncordoned and has the phase of a node
//       new target, an obstacle or a       without a change. The same if all pods are replaced, only the label remains
//       stop appeared                      to be written, and an obstacle prevents that. If max-mode is Observe,
//                                          nothing is written, and a finding names the cordon
//   C4  the change is touched, something   Nothing more is deleted or written; a finding says why
//       remains to be done, and the target
//       is invalid, the node is Blocked
//       for it, or KAI uses its GPUs
//   C5  a new target appeared, and listed  The pods are listed again, also new ones that may have read the former text,
//       pods remain                        one second after the edit; then C6
//   C6  first pods or the label remain     Draining: waits for the workloads or evicts them, if losing these pods
//                                          disturbs them; then writes the label and deletes the first pods. If the
//                                          change is untouched and a person uncordons the node, or idleTimeout passes:
//                                          leaves the change and is deferred. Nothing is deleted while the node is
//                                          NotReady; untouched, it leaves the change after verifyTimeout, also if
//                                          workloads remain
//   C7  a new target appeared, all listed  Pods that cannot have read the new text are listed, not before one second
//       pods are gone, and the new ones    after the edit, and only while KAI uses no GPU of the node and the node is
//       are not Ready with what they read  Ready; then C6
//   C8  first pods are still terminating   Waits; Failed after verifyTimeout
//   C9  last pods remain                   Deletes them once the node, MPS and the first pods are Ready; Failed after
//                                          verifyTimeout (if no new pod comes: after idleTimeout as well)
//   C10 all pods are replaced, Ready, and  The node leaves the change (Verified) with the revision that these pods have
//       have shown what they read for the  read. If that is no longer the target, N8 applies
//       status lag                         If the text was edited and edited back since, pods that may have read the
//                                          one in between are listed again
//   C11 verifyTimeout has passed           Fewer devices than GFD counts: leaves the change (VerifiedDegraded). More
//                                          than recorded: leaves the change. Pods older than the text: listed again.
//                                          Otherwise Failed, and autoscalers are allowed to remove the node
//   C12 the label was written, and the     The pods are listed; then C6
//       pods did not reload in two minutes
//
// Touched: a listed pod is gone or terminating, the change's label is written, or the pods were listed again after
// that. A touched node goes on, also if a person uncordons it or its policy is deleted: the policy that governs the
// node now decides.
// Stop: paused, aborted, undone, Observe, Approve without approval, outside its windows, MaxFailures; or an idle node
// needs the slot of this one, which only waits for its workloads (rollout/slot_yield.h). Not a stop:
// settling, GPUOperatorUpdating, a key that is not projected yet, a canary that stopped showing its profile, a full
// budget.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "reconcilers/model/ages.h"
#include "reconcilers/node/node_patch.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/node/node_use.h"

namespace gso {

// How long plugin and GFD may take to reload by themselves after a label changed, before their pods are replaced.
inline constexpr Duration kReloadGrace = std::chrono::minutes(2);

// Why a node that only waits is uncordoned and queued again (C3).
struct Stop {
  std::string reason;   // CamelCase.
  std::string message;  // For people.
};

// Why a node waits for its workloads: one of the Blocked reasons, and a text for people that names the workloads.
struct BlockedBy {
  std::string_view reason;
  std::string message;
};

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
  ProfilePtr begun_for;         // The profile of change.to, if the node has another target now; null: unknown.
  std::optional<Stop> stop;
  std::optional<BlockedBy> blocked_by_pods;                  // According to the last list of its consumers.
  std::function<std::optional<KaiHindrance>()> kai_hinders;  // Asked only before pods are replaced.
};

struct Step {
  Phase phase = Phase::unmanaged;  // Before the step.
  Plan plan;            // Actions, findings, timers, the time of the next look, whether consumers must be listed.
  bool evicts = false;  // Evict its consumers now, as far as their jobs allow (drain.h).
  bool done = false;    // The change ends: pods that the kubelet has rejected meanwhile can be removed.
};

// The node has a change (facts.change).
[[nodiscard]] Step step(const StepInput& input);

// Keeps the timers of a change running without a step, for a pass that has reached its limit.
void keep_timers(const NodeView& view, const RolloutSpec& rollout, Ages& ages);

// The timers of a change.
[[nodiscard]] TimerKey draining_timer(const std::string& node, const NodeChange& change);
// A new list of pods restarts this timer.
[[nodiscard]] TimerKey verifying_timer(const std::string& node, const NodeChange& change);
[[nodiscard]] TimerKey shown_timer(const std::string& node, const NodeChange& change);
[[nodiscard]] TimerKey reloading_timer(const std::string& node, const NodeChange& change);
// Since when the target text of the node has been in its key, as far as the operator has seen it.
[[nodiscard]] TimerKey unchanged_timer(const std::string& node, std::string_view target);

}  // namespace gso
