// What the start of a node's change writes, once its turn has come (starts.h).
#pragma once

#include "reconcilers/fleet/pass.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/node/assess.h"

namespace gso {

// Plans the patch that takes the node into its change. `live`: nobody on the node has to be waited for, so the
// deletions of its first pods follow in the same plan. Otherwise the users of its GPUs are listed first.
void start_node(Pass& pass, const Node& node, const NodeAssessment& a, const RolloutSpec& rollout, bool live);

}  // namespace gso
