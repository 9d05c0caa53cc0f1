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

// Adds a diagnostic of the error, and a second one for the line that might be its cause.
void add_diagnostics(const YamlError& error, std::vector<Diagnostic>& diagnostics);

// Sorts by line and column; equal places keep their order. Keeps the first hundred errors and the first hundred others,
// and adds an info with the number of those that were dropped.
void sort_and_limit(std::vector<Diagnostic>& diagnostics);

}  // namespace gso
