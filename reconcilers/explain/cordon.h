// Cordons, for people.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

struct NodeAssessment;  // reconcilers/node/assess.h

// The finding about a node that is cordoned, and that no change in progress uncordons.
inline constexpr std::string_view kCordoned = "Cordoned";
// The operator has cordoned the node for a change that failed: the cordon stays until the node is retried.
[[nodiscard]] bool is_cordon_of_failure(const Node& node);

// Who cordoned the node: "cordoned by somebody else than the operator", "cordoned by the operator, for the failed
// change". Empty: it is not cordoned, or the operator uncordons it when the change in progress finishes. `assessment`
// is null where no plugin serves the node.
[[nodiscard]] std::string cordon_text(const Node& node, const NodeAssessment* assessment);

// That no new pod gets the node's GPUs because of that cordon, and who ends it. `name`: what the command to type calls
// the node: its name, or "NODE" where equal findings of many nodes are printed once. nullopt: cordon_text() is empty.
[[nodiscard]] std::optional<Finding> cordon_finding(const Node& node, const NodeAssessment* assessment,
                                                    std::string_view name);

// A cordoned node that the operator manages is out of service for every budget; empty: this one is not counted.
[[nodiscard]] std::string cordon_slot(const Node& node, const NodeAssessment* assessment);

}  // namespace gso
