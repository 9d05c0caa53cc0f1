// What to type next about a rollout: how to end a stop, and how to look at each node that is in trouble.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/commands/rollout/view.h"
#include "reconcilers/explain/change_step.h"
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

}  // namespace gso
