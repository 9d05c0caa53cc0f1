// The next step of a node in a change, or what it waits for: the only place that decides it.
//
// A node without a change (read by the assessment, acted on by node_states.cc and rollout/):
//   N1  its change cannot be read          nothing; Held, with a finding that says how to lift it
//   N2  no plugin with profiles serves it  Unmanaged; leftovers of a change go after two minutes (to nos: at once)
//   N3  no baseline yet                    nothing; Unrecorded
//   N4  nothing valid resolves             Blocked
//   N5  it loaded something by itself      Verifying; recorded when it shows it, restarted (N8) when it does not
//   N6  RollingUpdate replaces its pods    FollowingDaemonSet
//   N7  it runs its target                 UpToDate; drift that lasts is a reason for N8
//   N8  it needs a change                  Blocked by an obstacle, Held by a holder, else Pending
//
// A node with a change; the code has one function for each row, in this order, and the first that applies decides:
//   C1  somebody holds it                  nothing; Held; every deadline starts anew afterwards
//   C2  failed                             shows its profile all the same: out, Recovered; else nothing
//   C3  untouched, and there is a new      backed out: uncordoned, phase as without a change; the same where all pods
//       target, an obstacle or a stop      are replaced, only the label is left, and an obstacle is in its way
//   C4  touched, something is left to do,  nothing more is deleted or written; a finding says why
//       and the target is invalid or
//       impossible here, or KAI uses it
//   C5  new target, listed pods remain     a new list in place, one second after the edit; then C6
//   C6  first pods or the label remain     Draining: waits for workloads or has them evicted; then label and first
//                                          pods. Untouched only: uncordoned by a person, or idleTimeout: out, deferred
//   C7  all listed pods gone, and the      those that cannot have read it are listed; then C6
//       text is newer than the new pods
//   C8  first pods still terminate         waits; verifyTimeout: Failed
//   C9  last pods remain                   deleted once MPS and the first pods are Ready; verifyTimeout: Failed
//   C10 all replaced, Ready and shown for  out, Verified, with the revision that these pods have read
//       the status lag
//   C11 verifyTimeout passed               fewer devices: out, Degraded; more than known: out; pods older than the
//                                          text: listed again; else Failed, and autoscalers may take the node
//   C12 label moved, not reloaded in two   pods are listed, C6
//       minutes
//
// Touched: a listed pod is gone or terminating, the change's label is written, or the list was written anew after that.
// Stop: paused, aborted, undone, Observe, Approve without approval, outside its windows, MaxFailures. Not a stop:
// settling, GPUOperatorUpdating, a key that is not projected yet, a canary that is unwell, a full budget.
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

// Why a node of a rollout that only waits is given back (C3).
struct Stop {
  std::string reason;   // CamelCase.
  std::string message;  // For people.
};

// Why a node waits for its workloads: one of the Blocked reasons, and who it is, for people.
struct BlockedBy {
  std::string_view reason;
  std::string message;
};

// KAI's use of a node's GPUs, where it hinders a restart into replicas (S8).
struct KaiHindrance {
  bool certain = false;  // KAI shares GPUs of the node; else it is not known yet whether it does.
  std::string why;
};

// What a step is decided from. Everything outlives the call.
struct StepInput {
  const NodeView& view;
  const SharingPolicy& policy;  // That governs the node.
  ProfileCache& book;
  std::optional<Stop> stop;
  std::optional<BlockedBy> blocked_by_pods;                  // Of its consumers as last listed.
  std::function<std::optional<KaiHindrance>()> kai_hinders;  // Asked only before pods are replaced.
};

struct Step {
  Phase phase = Phase::unmanaged;  // Before the step.
  Plan plan;                       // Actions, findings, timers, when to look again, whether consumers must be listed.
  bool evicts = false;             // Its consumers are to be evicted now, as their jobs allow (drain.h).
  bool done = false;               // The change ends: what the kubelet has refused meanwhile may be removed.
};

// The node has a change (facts.change).
[[nodiscard]] Step step(const StepInput& input);

// Lets the timers of a change run on without a step, for a pass that has no time for one.
void keep_timers(const NodeView& view, const RolloutSpec& rollout, Ages& ages);

// The timers of a change.
[[nodiscard]] TimerKey draining_timer(const std::string& node, const NodeChange& change);
// A new list of pods starts it anew.
[[nodiscard]] TimerKey verifying_timer(const std::string& node, const NodeChange& change);
[[nodiscard]] TimerKey shown_timer(const std::string& node, const NodeChange& change);
[[nodiscard]] TimerKey reloading_timer(const std::string& node, const NodeChange& change);
// Since when the text that the node goes to has been in its key, as far as it has been seen.
[[nodiscard]] TimerKey unchanged_timer(const std::string& node, std::string_view target);

}  // namespace gso
