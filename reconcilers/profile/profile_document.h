// Parsing of one YAML document that has been read already, for callers that walk over several. The inner half of
// profile.cc.
#pragma once

#include <vector>

#include "reconcilers/profile/profile.h"
#include "reconcilers/profile/yaml_empty_root.h"
#include "reconcilers/profile/yaml_node.h"

namespace gso {

// As parse_profile(), of a text with this empty root.
[[nodiscard]] ParsedProfile parse_empty_root(std::string_view text, const EmptyRoot& root);

// As parse_profile(), of this document alone.
[[nodiscard]] ParsedProfile parse_profile_node(const YamlNode& root);

// One, and another for the line that may be the cause.
void add_diagnostics(const YamlError& error, std::vector<Diagnostic>& diagnostics);

// By line and column; equal places keep their order. Of a flood, the first hundred errors and the first hundred others
// stay, and an info says how many do not.
void sort_and_limit(std::vector<Diagnostic>& diagnostics);

}  // namespace gso
