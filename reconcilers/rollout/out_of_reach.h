// Nodes of a rollout that wait, or are in flight, and that nobody may touch now.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "reconcilers/fleet/pass.h"

namespace gso {

class RolloutView;

inline constexpr std::string_view kNotReady = "NodesNotReady";

struct OutOfReach {
  // Reason (Held, DriverUpgrade, MIGChange, or NodesNotReady, which is no Blocked reason) -> node -> why.
  std::map<std::string, std::map<std::string, std::string>> nodes;
  bool stops_all = false;  // Nothing else of the rollout can move either: they are what is left, or its canary.
};
[[nodiscard]] OutOfReach out_of_reach_of(RolloutView& rollout);

}  // namespace gso
