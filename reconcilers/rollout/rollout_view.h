// A rollout, as it is at this moment: one policy taking one profile key to its present revision. Whoever speaks of it
// (starts, the record, both statuses, Events) reads this view; each of its parts is computed once per pass, when it is
// first asked for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/rollout/canary.h"
#include "reconcilers/rollout/gate.h"
#include "reconcilers/rollout/out_of_reach.h"

namespace gso {

class RolloutView {
 public:
  // All outlive this. Timers that the view names, and the moments at which it may change, go into the pass's plan.
  RolloutView(Pass& in, const RolloutKey& of, const Unit& nodes);
  RolloutView(const RolloutView&) = delete;
  RolloutView& operator=(const RolloutView&) = delete;

  Pass& pass;
  const RolloutKey& key;
  const Unit& unit;
  const SharingPolicy& policy;
  const PluginInstallation& set;
  const std::string target;      // The revision of most of its nodes; empty when none has one.
  const SharingRollout* object;  // Null: there is none for this revision.
  const bool anew;               // `object` is of an earlier attempt (attempts.h).
  // The fleet has shown this revision before, and nothing else is new: it needs no canary.
  const bool verified;

  // Why it starts no node now.
  const GateState& gate();
  // Nodes that stopped showing what they have loaded may be restarted into it.
  bool may_repair();
  // Why nodes that only wait are given back; nullopt: they are not.
  const std::optional<Stop>& stop();

  // Of one group of `unit`.
  const Canary& canary(const std::string& product);
  bool canary_passed(const std::string& product) { return canary(product).passed; }
  // Of every group that has a node which could be a canary now.
  bool all_canaries_passed();

  // Nodes that failed on the way to `target`. Of these, those that served when their change began: only they judge the
  // revision (S12).
  const std::set<std::string>& failed();
  std::int64_t failures();
  // Why this revision is taken no further: nodes that failed, now or before. Empty: nothing of that kind.
  const std::string& too_many_failures();

  // Nodes that wait, or are in flight, and that nobody may touch now.
  const OutOfReach& out_of_reach();
  // Why a group has no room for one more node in some budget, for people; empty: it has.
  const std::string& exhausted(const std::string& product);

  // The node belongs to it.
  [[nodiscard]] bool has(const NodeAssessment& assessment) const;
  // Its nodes in a change to `target`.
  const std::set<std::string>& changing();
  // Which templates its pods are made from, where the operator rolls them; empty: it rolls none. A new one is to be
  // tried like a new profile.
  const std::string& templates();

 private:
  std::optional<GateState> gate_;
  std::optional<bool> may_repair_;
  std::optional<std::optional<Stop>> stop_;
  std::map<std::string, Canary> canaries_;
  std::optional<std::set<std::string>> failed_;
  std::optional<std::string> too_many_failures_;
  std::optional<OutOfReach> out_of_reach_;
  std::optional<std::set<std::string>> changing_;
  std::optional<std::string> templates_;
  std::map<std::string, std::string> exhausted_;
};

// All rollouts of a pass: made by plan_all(), and shared by the reconcilers.
class RolloutViews {
 public:
  RolloutViews(const Snapshot& snapshot, Index& index) : pass_(snapshot, index, "rollout", this) {}

  // Null: no node belongs to such a rollout.
  [[nodiscard]] RolloutView* find(const RolloutKey& key);
  // What the views have named so far: timers, and when to look again.
  [[nodiscard]] Plan take_plan() { return std::move(pass_.plan); }

 private:
  Pass pass_;
  std::map<RolloutKey, RolloutView> views_;
};

// The revision that most nodes of a unit are to have; empty when there is none.
[[nodiscard]] std::string target_of(const Unit& unit);

// The rollout of a unit that has nodes, and the same of one that may have none.
[[nodiscard]] RolloutView& rollout_of(const Pass& pass, const RolloutKey& key);
[[nodiscard]] RolloutView* find_rollout(const Pass& pass, const RolloutKey& key);

}  // namespace gso
