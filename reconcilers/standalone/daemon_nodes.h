// The nodes of standalone MPS daemons, read once per pass.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/node/mps_daemon_change.h"
#include "reconcilers/rollout/budgets.h"

namespace gso {

// One node. All referenced objects outlive it.
struct DaemonNode {
  const Node* node = nullptr;
  const NodeAssessment* assessment = nullptr;  // Null: no device plugin serves the node.
  const Operand* daemonset = nullptr;          // The pod's, else the mark's; null: it is gone.
  const Pod* pod = nullptr;
  const SharingPolicy* policy = nullptr;  // Never null.
  MpsDaemonChangeOnNode mark;
  std::string_view holder;  // Not the mark itself. Empty: nobody.
  std::string product;
  bool busy = false;  // It holds a slot: out of service, in whoever's change, or its mark cannot be read.
  [[nodiscard]] const std::string& name() const { return node->meta.name; }
  // The pod was created from an older template; false if the newest one is not known.
  [[nodiscard]] bool is_outdated() const;
  [[nodiscard]] bool in_change() const { return mark.change.has_value(); }
  // Its daemon of the newest template was not Ready in time, and is not tried again by itself.
  [[nodiscard]] bool has_failed() const;
  // A person has asked for another attempt since the change failed or was deferred (`rollout start`).
  [[nodiscard]] bool is_asked_again() const;
  // Nodes of one policy and DaemonSet; those of one product among them are a group.
  [[nodiscard]] RolloutKey rollout() const;
  [[nodiscard]] std::pair<RolloutKey, std::string> group() const { return {rollout(), product}; }
};
// Why its pod does not serve, for people.
[[nodiscard]] std::string why_not_ready(const DaemonNode& node);
// `index` is up to date with `world`.
[[nodiscard]] std::vector<DaemonNode> read_daemon_nodes(const World& world, const Index& index);

using DaemonGroups = std::map<std::pair<RolloutKey, std::string>, BudgetCount>;
[[nodiscard]] DaemonGroups groups_of(const std::vector<DaemonNode>& nodes);

}  // namespace gso
