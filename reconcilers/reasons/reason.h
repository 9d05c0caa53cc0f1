// Why something does not go on, or what was found: a code, and the sentence about it. Every decision that says no
// returns this type, so that statuses, findings, explain, audit and the commands show one answer, and nobody reads the
// sentence to learn what it says.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace gso {

struct Reason {
  std::string code;     // CamelCase, stable: of labels.h or of a check; of a container that waits, the kubelet's.
  std::string message;  // For people.
  Reason() = default;
  Reason(std::string_view why, std::string text) : code(why), message(std::move(text)) {}
  friend auto operator<=>(const Reason&, const Reason&) = default;
};

// --- How much a code weighs, in every output.

enum class Severity { error, warning, info };

// "error", "warning", "info".
[[nodiscard]] constexpr std::string_view to_string(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warning:
      return "warning";
    case Severity::info:
      break;
  }
  return "info";
}

}  // namespace gso
