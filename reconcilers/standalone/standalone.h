// Standalone MPS daemons: replaces their pods after their DaemonSet has a new template (updateStrategy OnDelete), by
// the same gates and budgets as profiles, and reports what keeps a daemon from running.
//
// A node whose daemon is to be replaced:
//   row when                                     then
//   S1  the mark cannot be read                  nothing; a finding says how to release the node
//   S2  a person, a driver upgrade, a MIG        nothing; every deadline starts again afterwards
//       change or a remediation holds it
//   S3  the DaemonSet is gone, or is no longer   leaves: uncordoned, without the mark
//       for the node, and no pod is left
//   S4  its pod has the new template             leaves once the pod is Ready; Failed after verifyTimeout: the node
//                                                keeps its cordon and its slot until a newer template, or until a
//                                                retry (gpusharing.dev/retry of the policy) deletes the pod again
//   S5  no pod, or one that terminates           waits for the DaemonSet's controller; Failed after verifyTimeout
//   S6  its pod is old, still serves, and a      leaves
//       gate has closed
//   S7  its pod is old, and a person has         leaves, and does not begin again before idleTimeout has passed
//       uncordoned the node, or clients did not
//       end within idleTimeout
//   S8  its pod is old, and GPU clients remain   waits for them, or evicts them (workloads: Evict); not under
//                                                workloads: Interrupt
//   S9  its pod is old                           deletes it
// A node without the mark begins if its pod is old and serves the DaemonSet's former template, nobody holds it, it is
// in no other change, and gate, settling, canary, failures and budgets allow it; idle nodes first. Canaries soak from
// the moment at which the operator sees them serve, and from the start after each gap; the record keeps that moment
// (rollout/recorded_timers.h). The pods that only
// watch a daemon of the host are replaced without a drain, one at a time: no client connects to them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/rollout/budgets.h"
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/rollout/slots.h"

namespace gso {

// `slots`: those that changes of profiles have taken in this pass are no longer free. The rollouts of templates, for
// the status of their SharingRollouts.
[[nodiscard]] DaemonRollouts plan_standalone_mps(Pass& pass, Slots& slots);

// --- The nodes of standalone MPS daemons, read once per pass (daemon_nodes.cc).

// One node. All referenced objects outlive it.
struct DaemonNode {
  const Node* node = nullptr;
  const NodeAssessment* assessment = nullptr;  // Null: no device plugin serves the node.
  const Operand* daemonset = nullptr;          // The pod's, else the mark's; null: it is gone.
  const Pod* pod = nullptr;
  const SharingPolicy* policy = nullptr;  // Never null.
  MpsDaemonChangeOnNode mark;
  std::string_view holder;   // Not the mark itself. Empty: nobody.
  std::string_view upgrade;  // DriverUpgrade or MIGChange, also where a person holds the node. Empty: neither.
  std::string product;
  bool busy = false;  // It holds a slot: out of service, in whoever's change, or its mark cannot be read.
  [[nodiscard]] const std::string& name() const { return node->meta.name; }
  // The pod was created from an older template; false if the newest one is not known.
  [[nodiscard]] bool is_outdated() const;
  [[nodiscard]] bool in_change() const { return mark.change.has_value(); }
  // Its daemon of the newest template was not Ready in time, and is not tried again by itself.
  [[nodiscard]] bool has_failed() const;
  // Its daemon runs on while the driver or the MIG mode is changed, so that nothing can unload the kernel module.
  [[nodiscard]] bool pins_driver() const;
  // A person has asked for another attempt since the change failed or was deferred (`rollout start`).
  [[nodiscard]] bool is_asked_again() const;
  // Nodes of one policy and DaemonSet; those of one product among them are a group.
  [[nodiscard]] RolloutKey rollout() const;
  [[nodiscard]] std::pair<RolloutKey, std::string> group() const { return {rollout(), product}; }
};
// A node that pins_driver().
void report_pinned_driver(Pass& pass, const DaemonNode& node);
// Reports nodes whose daemon ends, or has just ended, under clients because no DaemonSet is for the node any more. The
// view has every such DaemonSet.
void report_lost_daemons(Pass& pass);
// Why its pod does not serve, for people.
[[nodiscard]] std::string why_not_ready(const DaemonNode& node);
// `index` is up to date with `world`.
[[nodiscard]] std::vector<DaemonNode> read_daemon_nodes(const World& world, const Index& index);

// --- The GPU clients of a node whose standalone MPS daemon is replaced, under `workloads: Evict`: which of them are
// evicted is decided as for changes of profiles (rollout/evictions.cc).

// `nodes`: those that could change together with it, because pods of one job run on them.
void evict_clients(Pass& pass, const DaemonNode& node, const std::vector<DaemonNode>& nodes, const NodeUse& use);
// Which clients the operator does not evict, or was not allowed to, and why: the end of a sentence. Empty: none.
[[nodiscard]] std::string why_clients_stay(const Pass& pass, const DaemonNode& node, const NodeUse& use);

// --- The rollouts of templates to standalone MPS daemons: what closes their gates, and how far their nodes are.

// What the nodes and their pods show. Which of them have failed, the gate and the wave are left open.
[[nodiscard]] DaemonRollouts count_daemons(const std::vector<DaemonNode>& nodes);

// Why no node of that node's rollout starts now, but for failures. Settling of the template, and an earlier attempt
// whose SharingRollout is replaced first, open by themselves.
[[nodiscard]] GateState daemon_gate(Pass& pass, const DaemonNode& node);

}  // namespace gso
