// Parsing of one YAML document that has been read already, for callers that walk over several.
#pragma once

#include <vector>

#include "reconcilers/profile/profile.h"
#include "reconcilers/profile/yaml_node.h"

namespace gso {

// As parse_profile(), of this document alone.
[[nodiscard]] ParsedProfile parse_profile_node(const YamlNode& root);

[[nodiscard]] Diagnostic to_diagnostic(const YamlError& error);

// By line and column; equal places keep their order. Of a flood, the first hundred errors and the first hundred others
// stay, and an info says how many do not.
void sort_and_limit(std::vector<Diagnostic>& diagnostics);

}  // namespace gso
