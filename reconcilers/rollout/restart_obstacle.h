// Mechanism DaemonSetRestart: what a restart of the DaemonSets must not touch. Their controller replaces the pods of
// every node, so the whole fleet of the ConfigMap decides, not only the nodes of the rollout.
#pragma once

#include <string>

namespace gso {

class RolloutView;

// Why the DaemonSets that mount the rollout's ConfigMap must not be restarted now, for people; empty: they can be.
[[nodiscard]] std::string restart_obstacle(const RolloutView& rollout);

}  // namespace gso
