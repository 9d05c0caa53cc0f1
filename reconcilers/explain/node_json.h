// An explanation of a node as JSON: `explain -o json` and /debug/nodes.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "reconcilers/explain/node.h"

namespace gso {

// {"node":…,"state":…,…}: the names are stable.
[[nodiscard]] nlohmann::ordered_json explanation_json(const NodeExplanation& explanation);

}  // namespace gso
