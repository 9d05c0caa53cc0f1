// The columns and cells of `kubectl get`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/time.h"
#include "tests/sim/apiserver/resource.h"

namespace gso::sim {

// The columns of a built-in kind: its own, or Name and Age.
[[nodiscard]] std::vector<Column> builtin_columns(std::string_view kind);

// The cells of one object, in the order of its resource's columns.
[[nodiscard]] nlohmann::json table_cells(const Resource& resource, const nlohmann::json& object, k8s::WallTime now);

// "5m", "3h7m", "12d": apimachinery's duration.HumanDuration.
[[nodiscard]] std::string human_duration(k8s::Duration duration);

}  // namespace gso::sim
