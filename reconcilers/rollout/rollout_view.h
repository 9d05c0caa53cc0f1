// A ProfileRollout in this pass: one policy, one profile key, its present revision. Starts, the record, both statuses
// and Events read this view; each part is computed once per pass, on first use, and reading changes nothing else.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/partitioning/partitioning.h"
#include "reconcilers/rollout/budgets.h"
#include "reconcilers/rollout/canary.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/rollout/recorded_timers.h"
#include "reconcilers/rollout/standstill.h"
#include "reconcilers/rollout/waits.h"

namespace gso {

class RolloutView {
 public:
  // All arguments must outlive this. The times at which the view can change are added to the pass's plan.
  RolloutView(Pass& in, const RolloutKey& of, const ProfileRollout& nodes);
  RolloutView(const RolloutView&) = delete;
  RolloutView& operator=(const RolloutView&) = delete;

  Pass& pass;
  const RolloutKey& key;
  const ProfileRollout& profile_rollout;
  const SharingPolicy& policy;
  const PluginInstallation& installation;
  const std::string target;      // The target of most of its nodes; empty if none has one.
  const SharingRollout* object;  // Null: this revision has no SharingRollout.
  const bool anew;               // `object` belongs to an earlier attempt (rollout_object.h).
  // The fleet has shown this revision before, and nothing else is new.
  const bool verified;
  // Nodes of that product have shown it as well: their group needs no canary.
  [[nodiscard]] bool is_verified_on(const std::string& product) const;

  // Why it starts no node now.
  [[nodiscard]] const GateState& gate() const;
  // The gate is closed and opens by itself within moments: not reported, because each report costs two status writes.
  // Inputs that keep changing are reported.
  [[nodiscard]] bool waits_briefly() const;
  // Nodes that stopped showing what they have loaded are allowed to be restarted into it.
  [[nodiscard]] bool may_repair() const;
  // Why nodes that only wait are uncordoned and queued again; nullopt: they keep waiting.
  [[nodiscard]] const std::optional<Reason>& stop() const;
  // The same for a node in a drift repair, which needs no approval.
  [[nodiscard]] const std::optional<Reason>& stop_of_repairs() const;

  // The canary of one group of the rollout.
  [[nodiscard]] const Canary& canary(const std::string& product) const;
  [[nodiscard]] bool canary_passed(const std::string& product) const { return canary(product).passed; }
  // Only groups count that have a node which could be a canary now.
  [[nodiscard]] bool all_canaries_passed() const;

  // Nodes that failed during a change to `target`. present_failures() counts those whose failure counts against the
  // revision (S12), and failures() also such machines that have left the rollout since (counted_failures()).
  [[nodiscard]] const std::set<std::string>& failed() const;
  [[nodiscard]] std::int64_t present_failures() const;
  [[nodiscard]] std::int64_t failures() const;
  // Why no further node is changed to this revision: nodes that failed, now or before. Empty: no such reason.
  [[nodiscard]] const std::string& too_many_failures() const;

  // Nodes that are Pending or in a change, and that the operator must not change now.
  [[nodiscard]] const OutOfReach& out_of_reach() const;
  // Which budgets have no room for one more node of a group, and why, for people; empty: every budget has room.
  [[nodiscard]] const std::string& exhausted(const std::string& product) const;
  // What the Pending nodes wait for, while the gate is open.
  [[nodiscard]] const Waits& waits() const;

  // What keeps its nodes in progress from showing their profile.
  [[nodiscard]] const std::map<std::string, ChangeTrouble>& troubles() const;
  // DaemonSets that have stopped replacing pods of its nodes, for people; empty: none.
  [[nodiscard]] const std::string& stalled() const;
  // Why nothing moves, until somebody acts; nullopt: nodes make progress, or nothing remains to be done.
  [[nodiscard]] const std::optional<Reason>& standstill() const;

  // Nodes that run the target according to the record alone, while their pods may be older than its text: the record
  // was lost during this rollout, and taken anew from what the nodes show. By name.
  [[nodiscard]] const std::vector<std::string>& assumed() const;

  // Drifting nodes that keep the rollout open until they are repaired. A rollout that has ended has none: it is
  // reopened when the first repair begins, and then ends once for all of them.
  [[nodiscard]] std::int64_t repairs_left() const;

  // The node belongs to this rollout.
  [[nodiscard]] bool has(const NodeAssessment& assessment) const;
  // Its nodes in a change to `target`.
  [[nodiscard]] const std::set<std::string>& changing() const;
  // Canaries whose change begins in this pass (starts.cc): the record names them before anything is done to them.
  std::set<std::string> started_canaries;
  // templates_text() of its installation: the record has it, because a new template that the operator rolls (OnDelete)
  // needs a canary like a new profile. has_other_templates(): such a template has come since that text was recorded.
  [[nodiscard]] const std::string& templates() const;
  [[nodiscard]] bool has_other_templates(std::string_view then) const;

 private:
  mutable std::optional<GateState> gate_;
  mutable std::optional<bool> may_repair_;
  const std::optional<Reason>& first_stop(std::optional<std::optional<Reason>>& known, GateUse use) const;
  mutable std::optional<std::optional<Reason>> stop_;
  mutable std::optional<std::optional<Reason>> stop_of_repairs_;
  mutable std::map<std::string, Canary> canaries_;
  mutable std::optional<std::set<std::string>> failed_;
  mutable std::optional<std::string> too_many_failures_;
  mutable std::optional<OutOfReach> out_of_reach_;
  mutable std::optional<std::set<std::string>> changing_;
  mutable std::optional<std::string> templates_;
  mutable std::map<std::string, std::string> exhausted_;
  mutable std::optional<Waits> waits_;
  mutable std::optional<bool> waits_briefly_;
  mutable std::optional<std::map<std::string, ChangeTrouble>> troubles_;
  mutable std::optional<std::string> stalled_;
  mutable std::optional<std::optional<Reason>> standstill_;
  mutable std::optional<std::vector<std::string>> assumed_;
};

// All rollouts of a pass, created by plan_all() and shared by the reconcilers.
class RolloutViews {
 public:
  RolloutViews(const Snapshot& snapshot, Index& index) : pass_(snapshot, index, "rollout", this) {}

  // Null: no node belongs to such a rollout.
  [[nodiscard]] RolloutView* find(const RolloutKey& key);
  // Nodes in a change that wait for their pods, or for a permission (drain.h).
  [[nodiscard]] const std::map<std::string, Reason>& blocked_in_progress();
  // Names the timers of this pass that several planners read (recorded_timers.h).
  void declare_timers() { gso::declare_timers(pass_); }
  // What the views have added so far: timers, and when to plan again.
  [[nodiscard]] Plan take_plan() { return std::move(pass_.plan); }
  LabelledNodes labelled;    // For node.partitioning.
  SliceNodes slices;         // Those of them that share the budget of the cluster with the rollouts.
  std::int64_t started = 0;  // Slots of the cluster that rollouts have taken in this pass.

 private:
  Pass pass_;
  std::map<RolloutKey, RolloutView> views_;
  std::optional<std::map<std::string, Reason>> blocked_in_progress_;
};

// The target revision of most nodes of a rollout; empty if none has one.
[[nodiscard]] std::string target_of(const ProfileRollout& profile_rollout);

// Runs while a rollout waits for its inputs to settle.
[[nodiscard]] TimerKey unsettled_timer(const RolloutKey& key);

// The view of a rollout that has nodes; find_rollout() returns null if it has none.
[[nodiscard]] RolloutView& rollout_of(const Pass& pass, const RolloutKey& key);
[[nodiscard]] RolloutView* find_rollout(const Pass& pass, const RolloutKey& key);

}  // namespace gso
