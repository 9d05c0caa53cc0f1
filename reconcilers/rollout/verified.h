// Records which revisions nodes have shown: the last verified ones, and the last good profile of each policy.
#pragma once

#include <set>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/rollout/next_record.h"

namespace gso {

struct Verified {
  std::set<RolloutKey> complete;  // Rollouts whose nodes all show the revision.
  bool newly = false;             // A revision has become the verified one of its key.
};
[[nodiscard]] Verified record_verified(Pass& pass, NextRecord& next);

}  // namespace gso
