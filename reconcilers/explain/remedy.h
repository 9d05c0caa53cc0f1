// The one command to go on with, for a node in its state.
#pragma once

#include <string>
#include <string_view>

#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// Of the node, as explain_node() shows it (`state`); `assessment` is null where no plugin serves the node. Empty:
// nothing is to be done. What decides the node's profile is changed where it is decided: in the policy that chooses it,
// by the label of somebody else, or in the ConfigMap.
[[nodiscard]] std::string next_step(const World& world, const FleetIndex::Impl& index, const Node& node,
                                    const NodeAssessment* assessment, std::string_view state);

}  // namespace gso
