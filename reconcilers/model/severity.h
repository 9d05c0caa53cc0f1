// How much a diagnostic or a finding weighs, in every output.
#pragma once

#include <string_view>

namespace gso {

enum class Severity { error, warning, info };
[[nodiscard]] std::string_view to_string(Severity severity);  // "error", "warning", "info"

}  // namespace gso
