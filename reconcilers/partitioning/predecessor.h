// nos's gpu-partitioner, whose job node.partitioning has: two of them would undo each other's labels.
#pragma once

#include "reconcilers/model/plan_draft.h"

namespace gso {

// The Lease of nos's gpu-partitioner is being renewed, or it is not known yet whether it still is. Adds a finding that
// says so: then the operator only observes.
[[nodiscard]] bool predecessor_runs(PlanDraft& draft);

}  // namespace gso
