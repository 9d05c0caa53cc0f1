// resource.Quantity: "1500m", "2Gi", "8".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gso::sim {

// The canonical spelling ("1000m" -> "1", "1024Mi" -> "1Gi", "2000" -> "2k"), or nullopt when it is no quantity.
// Precision is one nano unit, as in Kubernetes.
[[nodiscard]] std::optional<std::string> canonical_quantity(std::string_view text);

}  // namespace gso::sim
