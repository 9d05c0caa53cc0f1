// JSON manifests for a YAML reader: where the two languages read the same text differently.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gso {

// The text with its strings spelt so that YAML reads in them what JSON does: surrogate pairs become one escape, and
// characters that YAML refuses or takes as the end of a line become escapes. nullopt where nothing needs that, and for
// what does not begin as JSON. Lines stay as they are.
[[nodiscard]] std::optional<std::string> json_for_yaml(std::string_view text);

// The offset of the first comment ("//", "/*") of a text that is JSON apart from its comments, as some editors write
// it; YAML reads such a comment as text. nullopt for other texts.
[[nodiscard]] std::optional<std::size_t> find_json_comment(std::string_view text);

}  // namespace gso
