// Policies that govern nodes which another policy selects too, for people.
#pragma once

#include <string>

#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// "2 of the selected nodes are governed by policy team: its priority is higher": which policies won nodes that this one
// selects, how many, and why. Empty: none did. Always empty for policy `default`, which every other one wins against.
[[nodiscard]] std::string overlap_text(const World& world, const FleetIndex::Impl& index, const SharingPolicy& policy);
// The same of all nodes that the policy selects and does not govern, also of `default` and of a policy that is being
// deleted, and of nodes that no policy governs.
[[nodiscard]] std::string other_governors_text(const World& world, const FleetIndex::Impl& index,
                                               const SharingPolicy& policy);

}  // namespace gso
