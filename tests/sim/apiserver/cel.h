// The part of CEL that validation rules of CRDs commonly use: literals, self, oldSelf, fields, indexes, has(), size(),
// type(), in, comparisons, + - * / %, && || !, the ternary, lists, string methods (startsWith, endsWith, contains,
// matches, size), duration(), and the macros all, exists, exists_one, filter, map. No optionals, no time-zone
// functions, no cost limits.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace gso::sim {

enum class CelResult {
  holds,
  violated,      // False, or an error while evaluating (a missing field), which the real server refuses too.
  not_evaluated  // A transition rule (oldSelf) on a create, or an expression beyond the part above.
};

// `old` is nullptr when there is no old value.
[[nodiscard]] CelResult evaluate_cel(std::string_view rule, const nlohmann::json& self, const nlohmann::json* old);

}  // namespace gso::sim
