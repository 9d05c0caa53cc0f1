// The profile of a revision that need not be in its ConfigMap any more: somebody has edited the key since.
#pragma once

#include <string_view>

#include "reconcilers/cluster/profile_cache.h"
#include "reconcilers/cluster/record.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// From a text that this process has seen, else from the record, else from a SharingRollout: only the last two survive a
// restart of the operator. `record` may be null. `overridden`: as for ProfileCache::compile(). Null: none of them has a
// valid text of that revision.
[[nodiscard]] ProfilePtr known_profile(std::string_view revision, const World& world, const FleetRecord* record,
                                       ProfileCache& profiles, const OverriddenErrors& overridden);

}  // namespace gso
