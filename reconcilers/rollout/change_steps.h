// The nodes in a change: the next step of each, the walk over all of them, and those that the operator does not manage
// any more.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/rollout/slots.h"

namespace gso {

// --- The next step of each node in a change, as one pass decides it: the only place that asks step() about the nodes
// of a fleet. The operator acts on it (change_steps.h), and `explain`, `status` and `rollout status` show it.

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
  // Idle nodes go first: a node that only waits for its workloads gives its slot to an idle node that needs one. It
  // leaves its change before a pod of it is deleted, if its policy waits for workloads, some still use it, and no slot
  // is free for a Pending node that is certainly idle, and would be free without it. A node that stays out of service
  // keeps its slot anyway. Pending nodes that were not listed lately are listed first, a few per pass. Each idle node
  // takes one slot. nullopt: it keeps its slot.
  [[nodiscard]] std::optional<Reason> stop_for_idle_node(const std::string& name, const NodeAssessment& a,
                                                         const Reason& who);
  // A Pending node that could start if `name` left its change, and is idle; empty: none is known.
  [[nodiscard]] std::string idle_node(const std::string& name, const NodeAssessment& a, const RolloutView& rollout);
  [[nodiscard]] std::string first_idle(const RolloutView& rollout, const Group& group);

  Pass& pass_;
  std::optional<BusyNodes> busy_;  // Made when a node asks: most passes have none that does.
  std::set<std::string> promised_;
};

// What prevents the next step of a node whose pods are being replaced (C4), whatever stops its rollout, while no
// deadline runs: an obstacle, or KAI's use of its GPUs as far as that is certain. nullopt: nothing does.
[[nodiscard]] std::optional<Reason> obstacle_half_way(Pass& pass, const Node& node, const NodeAssessment& assessment);

// --- All nodes in a change, at the cost of those that need something: the others are skipped until their next date.

void plan_changes_in_progress(Pass& pass);

// --- Nodes in a change that the operator does not manage any more: no plugin DaemonSet selects them, the plugin runs
// without profiles, or nos has taken them over. What the change left there is removed once that is certain.

void plan_abandoned(Pass& pass);

}  // namespace gso
