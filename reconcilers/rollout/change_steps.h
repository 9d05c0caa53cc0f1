// The next step of each node in a change, as one pass decides it: the only place that asks step() about the nodes of a
// fleet. The operator acts on it (change_walk.h), and `explain`, `status` and `rollout status` show it.
#pragma once

#include <optional>
#include <string>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/rollout/slot_yield.h"

namespace gso {

class ChangeSteps {
 public:
  // `pass` must outlive it.
  explicit ChangeSteps(Pass& pass) : pass_(pass) {}

  // Nothing is decided about this node now: no record of the fleet exists yet, its namespace has not synced, or the
  // stores do not show the operator's last write to it.
  [[nodiscard]] bool is_undecided(const std::string& node, const NodeAssessment& assessment) const;
  // Of a node in a change, with what stops its rollout. Ask once per node: a node that leaves its change for an idle
  // one reserves that one. Adds to the pass's plan what must be looked up first; the step's own plan is not added.
  [[nodiscard]] Step of(const Node& node, const NodeAssessment& assessment);

 private:
  // What stops the rollout of the node, or makes the node leave its change.
  [[nodiscard]] std::optional<Stop> stop_for(const std::string& name, const NodeAssessment& a,
                                             const std::optional<BlockedBy>& who);

  Pass& pass_;
  SlotYield yield_{pass_};
};

}  // namespace gso
