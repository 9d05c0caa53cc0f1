// What an operator that leaves for good takes with it: its cordons, its labels and annotations, its finalizers. Nothing
// that would end a process on a GPU.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/plan.h"

namespace gso {

struct Cleanup {
  // PatchNode, PatchFinalizers and PatchStatus; empty when nothing of ours is left.
  std::vector<PlannedAction> actions;
  std::vector<std::string> kept;  // What stays on purpose, and why: for people.
};

// Nodes whose profile label a policy with deletionPolicy Revert has written: it goes back where nobody uses the GPUs,
// so their consumers must be listed first.
[[nodiscard]] std::set<std::string> nodes_to_revert(const World& world, FleetIndex& index);

// `index` is up to date with `world`. `in_use`: nodes of nodes_to_revert() with GPU consumers.
//
// Cordons of ours go, but where a driver upgrade, a MIG change or `hold` relies on them (S7). Labels that we wrote go
// back to what stood before; nvidia.com/mps.capable stays, since the MPS daemon would end without it. The label that
// selects a profile stays (Retain), or goes back (Revert) on nodes that nobody uses. SharingRollouts under way end as
// Superseded (kOperatorRemoved): nobody is left to go on with them, and an operator that comes back begins anew. The
// conditions of policies become Unknown, for the same reason.
[[nodiscard]] Cleanup plan_cleanup(const World& world, FleetIndex& index, const std::set<std::string>& in_use,
                                   WallTime now);
inline constexpr std::string_view kOperatorRemoved = "OperatorRemoved";

}  // namespace gso
