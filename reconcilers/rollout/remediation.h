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

// How long ago the attempt was recorded. Attempts that are older than FleetRecord::kRemediationsKept count no more.
[[nodiscard]] Duration age_of(const Pass& pass, const RecordedRemediation& attempt);
// Names the timers of these ages, for the attempts of the record.
void run_remediation_timers(Pass& pass);

}  // namespace gso
