// Policies whose nodes wait for a change that has no SharingRollout yet: between an edit and its rollout, only a pause
// of the policy stops them.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "controller/commands/rollout/verbs.h"
#include "controller/commands/rollout/view.h"
#include "reconcilers/fleet/tally.h"

namespace gso {

// A policy, and when its nodes start.
struct AboutToStart {
  std::string policy;
  bool paused = false;  // spec.rollout.paused is set already.
  std::string start;    // "nodes start at 13:00:33Z unless …"; empty: that is not known.
};
// Of the rollouts that `is_meant` names, by policy. Not those that a person or failures have ended.
[[nodiscard]] std::vector<AboutToStart> about_to_start(const RolloutCall& call,
                                                       const std::function<bool(const RolloutKey&)>& is_meant);

// Changes that take the place of these rollouts, and whose own SharingRollouts do not exist yet: a switch of the former
// does not hold them. Not those of policies that are paused.
[[nodiscard]] std::vector<AboutToStart> about_to_replace(const RolloutCall& call,
                                                         const std::vector<RolloutFacts>& rollouts);

// Those that are not paused, else all.
[[nodiscard]] std::set<std::string> policies_about_to_start(const RolloutCall& call);

}  // namespace gso
