// Switches that people set: whether one is on, and whether another attempt is asked for.
#pragma once

#include <optional>
#include <string_view>

namespace gso {

// --- What the value of a switch means that a person sets as an annotation or label (gpusharing.dev/hold, …).

// "false", "0", "no" and "off", in any case: the author says no.
[[nodiscard]] bool says_no(std::string_view value);

// For switches that stop the operator. Off: absent, empty, or a value that says no. Everything else is on ("True",
// "yes", "1", a typing error): in doubt the operator holds.
[[nodiscard]] bool is_switched_on(std::optional<std::string_view> value);

// --- Another attempt at a revision: the annotation gpusharing.dev/retry of a SharingPolicy.

// A person asks for another attempt than the one for which `recorded` was stored, by another value of the annotation
// (`rollout start`). An absent annotation asks for nothing: tools that apply the policy from files remove annotations
// that the files lack.
[[nodiscard]] inline bool asks_again(std::string_view recorded, std::string_view present) {
  return !present.empty() && present != recorded;
}

}  // namespace gso
