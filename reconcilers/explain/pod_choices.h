// A node whose change waits for pods: nothing is wrong, and what ends the wait is a decision.
#pragma once

#include <string>
#include <vector>

#include "reconcilers/explain/reading_pass.h"

namespace gso {

// What can end the node's wait for its pods, one alternative a line, each with whoever decides it: by the policy's
// `rollout` and by why the pods stay. Empty: the node does not wait for pods, or its rollout is stopped as well.
[[nodiscard]] std::vector<std::string> pod_choices(ReadingPass& pass, const Node& node,
                                                   const NodeAssessment& assessment);

}  // namespace gso
