// The JSONPath subset of additionalPrinterColumns and selectableFields: .a.b, ['a.b'], [0], [*], [?(@.type=="Ready")].
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace gso::sim {

// The first value that the path finds, all of them joined by spaces when [*] or a filter finds more; null for none.
[[nodiscard]] nlohmann::json json_path_value(const nlohmann::json& object, std::string_view path);

}  // namespace gso::sim
