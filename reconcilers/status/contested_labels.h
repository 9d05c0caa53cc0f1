// Labels of nodes that another client keeps changing, for the condition LabelsContested of their policies.
#pragma once

#include <map>
#include <string>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/status/policy_sum.h"

namespace gso {

// `sums`: by the name of the policy.
void note_contested_labels(const Pass& pass, std::map<std::string, PolicySum>& sums);

}  // namespace gso
