// Pods that the scheduler leaves waiting although a node has free slices for them. It looks at volumes, the affinity
// between pods, their spread and more, which partitioning does not read: such a pod is planned for on another node, and
// the slices serve others.
#pragma once

#include <cstddef>
#include <vector>

#include "reconcilers/model/plan_draft.h"
#include "reconcilers/partitioning/partitioned_node.h"
#include "reconcilers/partitioning/slice_plan.h"

namespace gso {

// Which pods are refused, as the timers of earlier passes say. A pod is refused on a node that has had free slices for
// it for PartitioningSettings::confirm_timeout, or for three minutes if another node was that before; and for up to an
// hour after the node has them no more. Names the timers that go on.
[[nodiscard]] RefusedPlaces refused_places(PlanDraft& draft, const std::vector<PartitionedNode>& nodes,
                                           const std::vector<NodeStanding>& standings,
                                           const std::vector<const SlicePod*>& pods);
// Begins the wait of each pod that the plan puts on slices that are free already: the scheduler binds it now, or has a
// reason not to. `changing`: by node: its slices are about to change, and the wait begins once they have.
void await_scheduler(PlanDraft& draft, const std::vector<PartitionedNode>& nodes,
                     const std::vector<NodeStanding>& standings, const std::vector<const SlicePod*>& pods,
                     const std::vector<bool>& changing, const SlicePlan& plan);

}  // namespace gso
