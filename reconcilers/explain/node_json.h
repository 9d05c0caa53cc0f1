// An explanation of a node as JSON: `explain -o json` and /debug/nodes.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "reconcilers/explain/node.h"

namespace gso {

// Of the JSON forms of explanations (docs/json.md): it changes when a field changes its meaning or goes.
inline constexpr int kExplanationVersion = 1;

// [{"gpu":0,"memoryMiB":40960,"used":{"10":2},"free":{}}]: the numbers of slices by their size in GiB. `status` has the
// same.
[[nodiscard]] nlohmann::ordered_json slices_json(const std::vector<GpuBar>& bars);

// {"node":…,"state":…,…}: the names are stable.
[[nodiscard]] nlohmann::ordered_json explanation_json(const NodeExplanation& explanation);

}  // namespace gso
