// Places in a JSON value, written as JSON pointers with two additions: a list's element by a field of it
// ("/resources/name=pods", "/items/metadata.name=a"), and every element ("*", "name=*").
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace gso::conformance {

// The value at `path`, or nullptr. A "*" stands for the first element.
[[nodiscard]] const nlohmann::json* find(const nlohmann::json& value, std::string_view path);

// Removes what is at `path`, everywhere that "*" leads.
void erase(nlohmann::json& value, std::string_view path);

}  // namespace gso::conformance
