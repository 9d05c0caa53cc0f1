// The one command to continue with, for a node in its state.
#pragma once

#include <string>
#include <string_view>

#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// For the node, as explain_node() shows it (`state`); `assessment` is null if no plugin serves the node. Empty: no
// action is needed. The command changes the node's profile where it is chosen: in the policy, by another owner's label,
// or in the ConfigMap.
[[nodiscard]] std::string next_step(const World& world, const FleetIndex::Impl& index, const Node& node,
                                    const NodeAssessment* assessment, std::string_view state);

// Shows why a node in a change does not come back: its kubelet, or a container that ends again and again. Empty:
// neither.
[[nodiscard]] std::string trouble_command(const FleetIndex::Impl& index, const Node& node,
                                          const NodeAssessment& assessment);
// The command of a reason for which a node is Blocked, completed for the node. Empty: it has none.
[[nodiscard]] std::string command_of_reason(const World& world, const FleetIndex::Impl& index, const Node& node,
                                            const NodeAssessment& assessment, std::string_view reason);

}  // namespace gso
