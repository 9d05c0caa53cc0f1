// Remediation: operand pods with a fault that only a new pod fixes (node/pod_faults.h) are deleted once each, with
// growing delays when that does not help. Each attempt is recorded before the pod is deleted.
#pragma once

#include <vector>

#include "reconcilers/fleet/pass.h"

namespace gso {

// The attempts that are due and not recorded yet.
[[nodiscard]] std::vector<RecordedRemediation> due_remediations(Pass& pass);
// Reports stuck pods, and deletes those whose attempt is recorded.
void plan_remediation(Pass& pass);

}  // namespace gso
