// Nodes of a rollout that are Pending or in a change, and that the operator must not change now.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/node/node_step.h"

namespace gso {

class RolloutView;

struct OutOfReach {
  // Reason (Held, DriverUpgrade, MIGChange, Quarantined, or NodesNotReady, which is not a Blocked reason) -> node ->
  // why.
  std::map<std::string, std::map<std::string, std::string>> nodes;
  // No other node of the rollout can continue: these nodes are all that is left, or its canary.
  bool stops_all = false;
};
[[nodiscard]] OutOfReach out_of_reach_of(const RolloutView& rollout);

// Of a node without a change, for people.
inline constexpr std::string_view kNotReadyText =
    "Node is NotReady: skipped until Ready; uses 1 slot of maxUnavailable";

// One node that is Pending or in a change: its reason there, and why. Empty: the operator can change it.
struct NodeOutOfReach {
  std::string_view reason;
  std::string why;
};
[[nodiscard]] NodeOutOfReach node_out_of_reach(const NodeAssessment& assessment, const Node& node);

}  // namespace gso
