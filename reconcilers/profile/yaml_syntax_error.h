// The error message for a text that is not YAML: libyaml reports where it stopped, which is often a line after the
// wrong one.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "reconcilers/profile/yaml_node.h"

namespace gso {

// Places as libyaml counts them.
struct YamlProblem {
  std::string_view problem;
  std::string_view context;  // Empty: none.
  Position at;
  Position context_at;
  std::optional<Position> flow;  // Where the outermost open [] or {} begins.
};

// `shown` converts a place as libyaml counts it into the place that an editor shows.
[[nodiscard]] YamlError explain_syntax_error(std::string_view text, const YamlProblem& found,
                                             const std::function<Position(Position)>& shown);

// The error for JSON with a comment before this offset, which is the document's first; nullopt for any other text.
// libyaml reads the comment as text, and stops a line or more after it.
[[nodiscard]] std::optional<YamlError> explain_json_comment(std::string_view text, std::size_t offset);

// The message for a text whose characters libyaml refuses, for `problem`.
[[nodiscard]] std::string explain_refused_character(std::string_view text, std::string problem);

}  // namespace gso
