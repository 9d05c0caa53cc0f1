// Mechanism DaemonSetRestart: the restarts, and what prevents them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "reconcilers/rollout/stops.h"

namespace gso {

// --- Mechanism DaemonSetRestart: if only new pods load a change, the operator restarts the DaemonSets, whose
// controller then replaces the pods at its own pace. A label is still changed node by node.

// What a rollout needs from its DaemonSets now.
struct DueRestarts {
  std::set<std::string> nodes;  // Pending nodes that need no label: they get new pods from their DaemonSets.
  std::string restarted_for;    // The revisions and the edit; empty without such nodes.
  std::vector<const DaemonSet*> daemonsets;  // Those that were not restarted for them yet.
};
[[nodiscard]] DueRestarts due_restarts(const RolloutView& rollout);

class DaemonSetRestarts {
 public:
  // Both must outlive it.
  DaemonSetRestarts(Pass& pass, RolloutObjects& objects) : pass_(pass), objects_(objects) {}

  // Plans the restarts that the rollout needs. The template names the revisions and the edit that it was restarted for,
  // so that each DaemonSet is restarted once for them. True: the nodes wait for their DaemonSets, and the caller must
  // start only nodes that need a label. False: the mechanism is another one, or the DaemonSets have been restarted and
  // these nodes have been left behind for longer than verifyTimeout: they are restarted one by one.
  [[nodiscard]] bool plan(const RolloutView& rollout);

 private:
  [[nodiscard]] bool wait_for_the_rest(const RolloutView& rollout, const std::set<std::string>& nodes,
                                       const std::string& restarted_for);

  Pass& pass_;
  RolloutObjects& objects_;
  std::set<ObjectKey> restarted_;  // In this pass: several rollouts can share a DaemonSet.
};

// --- Mechanism DaemonSetRestart: what a restart of the DaemonSets must not touch. Their controller replaces the pods
// of every node, so the whole fleet of the ConfigMap decides, not only the nodes of the rollout.

// Why the DaemonSets that mount the rollout's ConfigMap must not be restarted now, for people; empty: they can be.
[[nodiscard]] std::string restart_obstacle(const RolloutView& rollout);

}  // namespace gso
