// What a rollout of standalone MPS daemons writes: its objects, evictions and replacements of pods.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/rollout/rollout_object.h"
#include "reconcilers/standalone/daemon_nodes.h"

namespace gso {

// --- What is written to a node while its standalone MPS daemon is replaced: the mark
// (gpusharing.dev/mps-daemon-change), the cordon, and the deletion of the old pod. When each of them is due:
// standalone.h.

// The node is marked and, unless it is cordoned already or the policy says otherwise, cordoned. It has a DaemonSet.
void begin_change(Pass& pass, const DaemonNode& node);
// The mark is taken off, and the operator's cordon.
void leave_change(Pass& pass, const DaemonNode& node, std::string_view why);

// Of a node in a change:
// The operator's cordon is taken off, and the mark says until when the node does not begin again.
void defer_change(Pass& pass, const DaemonNode& node, std::string_view why);
// The mark says that the daemon of the newest template has failed.
void mark_failed(Pass& pass, const DaemonNode& node);
// `rollout start`: the pod, if the node has one, is created anew, and its time to get Ready begins again.
void try_again(Pass& pass, const DaemonNode& node);

// The DaemonSet's controller creates a pod of the newest template instead. The node has a pod.
void delete_old_pod(Pass& pass, const DaemonNode& node);

// --- The GPU clients of a node whose standalone MPS daemon is replaced, under `workloads: Evict`: which of them are
// evicted is decided as for changes of profiles (rollout/evictions.h).

// `nodes`: those that could change together with it, because pods of one job run on them.
void evict_clients(Pass& pass, const DaemonNode& node, const std::vector<DaemonNode>& nodes, const NodeUse& use);
// Which clients the operator does not evict, or was not allowed to, and why: the end of a sentence. Empty: none.
[[nodiscard]] std::string why_clients_stay(const Pass& pass, const DaemonNode& node, const NodeUse& use);

// --- The rollouts of templates to standalone MPS daemons: what closes their gates, and how far their nodes are.

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
