// Documents that are an empty {} or [] with something behind it in the same line. The plugin's YAML library loses track
// of the key that such a collection could be: it reads one more token and calls the document complete, so that
// "{}: v1" is an empty mapping there, and a mapping with a broken key for libyaml.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "reconcilers/profile/yaml_node.h"

namespace gso {

struct EmptyRoot {
  std::size_t length = 0;          // Of the text up to and with the closing bracket.
  Position behind;                 // Where the text begins that the plugin's library does not read.
  std::optional<YamlError> error;  // Set if the plugin's library refuses the text because of its next token.
};

// nullopt where the text begins with anything else: libyaml reads that as the plugin does.
[[nodiscard]] std::optional<EmptyRoot> find_empty_root(std::string_view text);

}  // namespace gso
