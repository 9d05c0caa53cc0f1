// What pods that wait for slices hear: one Event each, and a finding where no GPU can ever serve the pod.
#pragma once

#include <vector>

#include "reconcilers/model/plan_draft.h"
#include "reconcilers/partitioning/pending_pods.h"
#include "reconcilers/partitioning/slice_plan.h"

namespace gso {

// A container asks for more than one slice.
void report_refused(PlanDraft& draft, const std::vector<const SlicePod*>& pods);
// No node could hold the pod if it were empty. `largest`: GiB that one GPU can carry at most; 0: there is none.
void report_too_large(PlanDraft& draft, const std::vector<const SlicePod*>& pods, std::int64_t largest);
// The node on which each pod gets its slices, or why none can help now and what would be nearest. A pod for which a
// node has the memory once its label has moved hears that later: until then nothing is decided.
void report_planned(PlanDraft& draft, const std::vector<PartitionedNode>& nodes,
                    const std::vector<NodeStanding>& standings, const std::vector<const SlicePod*>& pods,
                    const RefusedPlaces& refused, const SlicePlan& plan);

}  // namespace gso
