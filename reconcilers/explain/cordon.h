// Cordons, for people.
#pragma once

#include <string>
#include <string_view>

#include "reconcilers/model/snapshot.h"

namespace gso {

struct NodeAssessment;  // reconcilers/node/assess.h

// What the operator's cordon of a node with a failed change is called.
inline constexpr std::string_view kCordonOfFailure = "cordoned by the operator, for the failed change";

// Who cordoned the node: "cordoned by somebody else than the operator", "cordoned by the operator, for the failed
// change". Empty: it is not cordoned, or the operator uncordons it when the change in progress finishes. `assessment`
// is null where no plugin serves the node.
[[nodiscard]] std::string cordon_text(const Node& node, const NodeAssessment* assessment);

// A cordoned node that the operator manages is out of service for every budget; empty: this one is not counted.
[[nodiscard]] std::string cordon_slot(const Node& node, const NodeAssessment* assessment);

}  // namespace gso
