// What to type next about a rollout: how to end a stop, how to look at each node that is in trouble, and where it waits
// for a slot of a full budget how the holders return to service and which budgets can be raised.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/commands/rollout/policy_waits.h"
#include "controller/commands/rollout/view.h"
#include "reconcilers/explain/reading_pass.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// Commands, each once, as they can be pasted into a shell: what else there is to say is a comment behind them ("kubectl
// logs …  # a100-01"). After failures also how to go back, and how to retry all failed nodes. None while nothing is
// wrong.
// `outlook`: its nodes in progress, and the stop that no operator has applied yet.
[[nodiscard]] std::vector<std::string> way_out(ReadingPass& pass, const RolloutFacts& facts,
                                               const RolloutOutlook& outlook);

// hold_text() of the nodes that somebody holds.
[[nodiscard]] std::vector<std::string> holds_on(const ReadingPass& pass, const RolloutFacts& facts);

// Of failed nodes of the policy that no rollout under way names: what shows the cause of each, and then, with `retry`,
// the one command that tries all of them again.
[[nodiscard]] std::vector<std::string> way_out_of_failed(ReadingPass& pass, std::string_view policy,
                                                         const std::vector<RolloutFacts::NodeRow>& nodes, bool retry);

// Of a policy whose change has no rollout under way.
[[nodiscard]] WaitOutlook outlook_of(ReadingPass& pass, const PolicyWait& wait);

// --- Of full budgets, in way_out_of_budgets.cc.

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
