// The next step of a node in a change, or what it waits for: only this function decides it. docs/node-steps.md has the
// rows, and the words that they use: N1 to N8 for a node without a change (assess_rows.cc), which node_states.cc and
// rollout/ act on, and C1 to C12 for one with a change. The code has one function for each, and asks them in order.
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

// The row of the second table that applies to a node in a change.
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
