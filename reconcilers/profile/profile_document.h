// Parsing of one YAML document that has been read already, for callers that walk over several.
#pragma once

#include <vector>

#include "reconcilers/profile/profile.h"
#include "reconcilers/profile/yaml_node.h"

namespace gso {

// As parse_profile(), of this document alone.
[[nodiscard]] ParsedProfile parse_profile_node(const YamlNode& root);

[[nodiscard]] Diagnostic to_diagnostic(const YamlError& error);

// By line and column; equal places keep their order.
void sort_by_position(std::vector<Diagnostic>& diagnostics);

}  // namespace gso
