// Texts of objects that have been parsed lately. The server parses or prints each, and in the same process the fleet
// and those who watch it read it again: they share one parsed form.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace gso::sim {

// Null when the text is no JSON.
[[nodiscard]] std::shared_ptr<const nlohmann::json> parsed_lately(std::string_view text);
// For who has both already.
void keep_parsed(std::string_view text, std::shared_ptr<const nlohmann::json> parsed);

}  // namespace gso::sim
