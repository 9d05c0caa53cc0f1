// One node whose change is under way.
#pragma once

#include <string>

#include "reconcilers/fleet/pass.h"

namespace gso {

// The next step of that node (it has a flight), or what it waits for.
void plan_flight(Pass& pass, const Node& node, const NodeAssessment& assessment);

// Names how long plugin and GFD have had to reload by themselves.
[[nodiscard]] std::string reloading_condition(const std::string& node, const Flight& flight);

}  // namespace gso
