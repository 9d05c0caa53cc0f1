// The forms in which commands print.
#pragma once

#include <iosfwd>

#include <nlohmann/json_fwd.hpp>

namespace gso {

enum class OutputForm { text, wide, json, yaml };

// One JSON or YAML document. `form` is one of these two.
void print_document(const nlohmann::ordered_json& document, OutputForm form, std::ostream& out);

}  // namespace gso
