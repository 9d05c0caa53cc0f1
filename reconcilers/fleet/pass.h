// One planning pass over the fleet: the snapshot, the index, and the plan under construction.
#pragma once

#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/cluster/discovery.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/model/plan_draft.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/node/node_labels.h"
#include "reconcilers/node/node_patch.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/node/node_step.h"

namespace gso {

using Index = FleetIndex::Impl;

class RolloutViews;  // rollout/rollout_view.h

class Pass : public PlanDraft {
 public:
  // All outlive this. `views` is shared by all reconcilers of one pass; null if none of these reconcilers is planned.
  Pass(const Snapshot& snapshot, Index& fleet, std::string_view reconciler, RolloutViews* views)
      : PlanDraft(snapshot, reconciler), index(fleet), rollouts(views) {}

  Index& index;
  RolloutViews* const rollouts;

  [[nodiscard]] bool plannable(const NodeAssessment& assessment) const;  // Its namespace has synced.
  // Where nothing is evicted. Read once for the whole pass.
  [[nodiscard]] const ProtectedNamespaces& protected_namespaces() const;

 private:
  mutable std::optional<ProtectedNamespaces> protected_;
};

// A node that planners visit: as the stores have it, and as it is assessed.
struct VisitedNode {
  const std::string& name;
  const Node& node;
  const NodeAssessment& a;
};
// Those of a bucket, by name.
[[nodiscard]] inline auto nodes_in(const Pass& pass, Bucket bucket) {
  const auto is_there = [&pass](const std::string& name) {
    return pass.index.find(name) != nullptr && pass.s.world.nodes.find(name) != nullptr;
  };
  return pass.index.nodes_in(bucket) | std::views::filter(is_there) |
         std::views::transform([&pass](const std::string& name) {
           return VisitedNode{name, *pass.s.world.nodes.find(name), *pass.index.find(name)};
         });
}

// Nodes for which an earlier pass named such a timer, if the timer's scope is still the node's target revision: that of
// its change, or of the change that it waits for. Nodes that are settled, or have another target since, are left out.
struct SeenNode {
  const TimerKey& timer;
  std::string name;
  const NodeAssessment& assessment;
  WallTime since;
};
[[nodiscard]] std::vector<SeenNode> seen_nodes(const Pass& pass, Timer timer);

// A node as its changes see it.
[[nodiscard]] NodeView view_of(const Pass& pass, const Node& node, const NodeAssessment& assessment);

// The SharingRollout of a revision of that key: its name, and how a plan refers to it.
[[nodiscard]] std::string rollout_name(const RolloutKey& key, std::string_view revision);
[[nodiscard]] ObjectRef rollout_ref(const std::string& name);
[[nodiscard]] ObjectRef rollout_ref(const SharingRollout& rollout);  // With its uid.

}  // namespace gso
