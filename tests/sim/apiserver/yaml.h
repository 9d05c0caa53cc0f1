// YAML bodies (server-side apply) as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace gso::sim {

// One document, with YAML 1.2's core scalars. Discarded when it does not parse. JSON is read as JSON.
[[nodiscard]] nlohmann::json yaml_to_json(std::string_view text);

// The paths of members that a JSON text gives more than once ("data.k").
[[nodiscard]] std::vector<std::string> duplicate_fields(std::string_view text);

}  // namespace gso::sim
