// Kubernetes quantities: "8", "500m", "2Ki", "1e3".
#pragma once

#include <optional>
#include <string_view>

namespace gso {

// nullopt: no quantity. The digits are read as a whole number and divided once, so that 1.5 and 1500m are equal.
// Source: k8s.io/apimachinery/pkg/api/resource (Quantity).
[[nodiscard]] std::optional<long double> parse_quantity(std::string_view text);

}  // namespace gso
