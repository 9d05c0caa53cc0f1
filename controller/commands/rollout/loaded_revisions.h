// Which revisions the nodes of each rollout run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

using RevisionCounts = std::map<std::string, std::int64_t>;  // By revision: nodes that have loaded it.

// By rollout. Nodes that have loaded a text that is not known are left out.
[[nodiscard]] std::map<RolloutKey, RevisionCounts> loaded_revisions(const World& world, const FleetIndex::Impl& index);

// "3 nodes run v1-2, 8 nodes run v1-1": of the policy's nodes, the most first. Empty: all of them run the same.
[[nodiscard]] std::string loaded_revisions_text(const World& world, const FleetIndex::Impl& index,
                                                std::string_view policy);

}  // namespace gso
