// Which nodes would be changed first, and what the others wait for: for `rollout start --dry-run`.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "reconcilers/model/snapshot.h"

namespace gso {

struct FirstStarts {
  std::set<std::string> nodes;
  // The policy's other nodes that need a change -> what each waits for.
  std::map<std::string, std::string> waits;
};
// What the operator plans in this world once its inputs have settled, and the kubelets have the text of each key.
// `consumers`: of nodes that must not be changed while pods use them, as just listed; a node that is left out counts as
// unused. `world` is changed: the nodes that start are in their change then.
[[nodiscard]] FirstStarts first_starts(World& world, const PlannerSettings& settings, WallTime now,
                                       const std::map<std::string, NodeConsumers>& consumers, std::string_view policy);

}  // namespace gso
