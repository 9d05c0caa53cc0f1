// Rollouts that nodes wait for and that start none of them: for `audit`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/explain/reading_pass.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// "run `COMMAND`": a command that sets a SharingPolicy or SharingRollout, which a cluster without the CRDs does not
// have.
[[nodiscard]] std::string to_run(const World& world, std::string_view command);

// A rollout that nodes wait for, and that starts none of them.
struct RolloutFinding {
  Finding finding;
  // The message without the cause: "the rollout of key any to v1-… starts no node, and 1 of 4 nodes waits for it
  // (a02)". Empty: the message says something else.
  std::string effect = {};
  std::string held = {};  // The node that a person holds, if that alone is the cause.
};
// For each rollout whose nodes do not run what their ConfigMap says: what stops it (a person, failures, mode Observe),
// or why none of its nodes makes progress (a full budget and the nodes that hold it, for example), which nodes wait,
// and what to do. Approvals and closed windows are for information; what opens by itself within minutes is left out.
[[nodiscard]] std::vector<RolloutFinding> waiting_rollouts(ReadingPass& pass);

}  // namespace gso
