// The rollouts of templates to standalone MPS daemons: what closes their gates, and how far their nodes are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/rollout/daemon_rollout.h"
#include "reconcilers/standalone/daemon_nodes.h"

namespace gso {

// What the nodes and their pods show. Which of them have failed, the gate and the wave are left open.
[[nodiscard]] DaemonRollouts count_daemons(const std::vector<DaemonNode>& nodes);
// Counts a node that is in a change as failed.
void note_failed(DaemonRollout& rollout, const std::string& node, std::string message);
// Names a node that waits.
void note_waiting(DaemonRollout& rollout, const std::string& node, std::string_view reason, std::string message);

// Why no node of that node's rollout starts now, but for failures. Settling of the template, and an earlier attempt
// whose SharingRollout is replaced first, open by themselves.
[[nodiscard]] GateState daemon_gate(Pass& pass, const DaemonNode& node);

}  // namespace gso
