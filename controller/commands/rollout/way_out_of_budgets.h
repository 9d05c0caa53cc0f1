// What to type next where a rollout waits for a slot of a full budget: how its holders return to service, and which
// budgets can be raised.
#pragma once

#include <string>
#include <vector>

#include "controller/commands/rollout/view.h"
#include "reconcilers/explain/change_step.h"

namespace gso {

// What returns the nodes that hold the slots to service comes before anything else, and to raise the budgets is the
// last one.
struct FullBudgets {
  std::vector<std::string> holders;
  std::vector<std::string> raises;
};

// Nothing while a node of the rollout makes progress: a wave that uses its budget is no trouble. A node that waits for
// its workloads, or for its kubelet, can keep its slot for long; so can the nodes of another rollout.
// `steps`: the rollout's nodes in progress.
[[nodiscard]] FullBudgets way_out_of_full_budgets(const ReadingPass& pass, const RolloutFacts& facts,
                                                  const std::vector<NodeStep>& steps);

// Of a policy that waits for a slot and has no node in progress: those that hold the slots are out of service for
// another cause, or in a change of another rollout.
[[nodiscard]] FullBudgets way_out_of_full_budgets(const ReadingPass& pass, const PolicyWait& wait);

}  // namespace gso
