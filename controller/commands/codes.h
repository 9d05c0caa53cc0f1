// `lint --codes`: every diagnostic code and every reason of a Blocked node, with what it means and what to do.
#pragma once

#include <iosfwd>

namespace gso {

// JSON: {"sections": [{"title", "intro", "codes": [{"codes", "severity", "meaning", "remedy"}]}], "blockedReasons":
// [{"reason", "meaning", "remedy"}]}, from which docs/reference.py makes the pages. Else one code a line, for people.
void print_codes(bool json, std::ostream& out);

}  // namespace gso
