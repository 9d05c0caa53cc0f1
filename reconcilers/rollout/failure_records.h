// Records the failures of revisions, what a person has undone, and the end of both.
#pragma once

#include <set>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/rollout/next_record.h"

namespace gso {

// `complete`: the rollouts whose nodes all show their revision.
void record_failures(Pass& pass, NextRecord& next, const std::set<RolloutKey>& complete);

}  // namespace gso
