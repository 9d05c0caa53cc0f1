// Every code with its meaning and remedy: the rows of reconcilers/reasons with those of the table of checks (chain.cc).
// docs/codes.md is generated from it (`./dev docs`), and `lint --codes` prints it.
#pragma once

#include <string_view>
#include <vector>

#include "reconcilers/reasons/codes.h"

namespace gso {

// Reasons of Blocked nodes first, then what is reported, then what lint and preflight check. A code is in one section,
// or in two of different kinds: a reason of a Blocked node can also be reported of something else.
[[nodiscard]] const std::vector<CodeSection>& code_catalogue();

// The row of a diagnostic's code or of a Blocked node's reason. nullptr: there is none.
[[nodiscard]] const CodeRow* find_code(std::string_view code);
// nullptr: no node is Blocked for that reason.
[[nodiscard]] const CodeRow* find_blocked_reason(std::string_view reason);

// Of find_code(); empty: the code is unknown.
[[nodiscard]] std::string_view meaning_of(std::string_view code);
[[nodiscard]] std::string_view remedy_of(std::string_view code);

}  // namespace gso
