// What the value of a switch means that a person sets as an annotation or label (gpusharing.dev/hold, …).
#pragma once

#include <optional>
#include <string_view>

namespace gso {

// "false", "0", "no" and "off", in any case: the author says no.
[[nodiscard]] bool says_no(std::string_view value);

// For switches that stop the operator. Off: absent, empty, or a value that says no. Everything else is on ("True",
// "yes", "1", a typing error): in doubt the operator holds.
[[nodiscard]] bool is_switched_on(std::optional<std::string_view> value);

}  // namespace gso
