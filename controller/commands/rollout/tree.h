// `rollout status --watch`: rollouts, their waves and their nodes as a tree.
#pragma once

#include <string>
#include <vector>

#include "controller/commands/live/lines.h"
#include "controller/commands/shared/node_filter.h"
#include "controller/commands/shared/screen.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// What to show: `name` of a SharingRollout, "policy/NAME", or empty for all in progress.
struct TreeScope {
  std::string name;
  NodeFilter only{};
};
// Nodes in a change first, each with its step and the pods that block it; then failed, blocked, held and pending ones;
// those with nothing to do are counted. Lines fit the screen's columns. `index` is refreshed.
[[nodiscard]] std::vector<LiveLine> rollout_tree(const World& world, FleetIndex& index, const PlannerSettings& settings,
                                                 const TreeScope& scope, k8s::WallTime now, const Screen& screen);

}  // namespace gso
