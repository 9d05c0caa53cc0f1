// Another attempt at a revision: the annotation gpusharing.dev/retry of a SharingPolicy.
#pragma once

#include <string_view>

namespace gso {

// A person asks for another attempt than the one for which `recorded` was stored, by another value of the annotation
// (`rollout start`). An absent annotation asks for nothing: tools that apply the policy from files remove annotations
// that the files lack.
[[nodiscard]] inline bool asks_again(std::string_view recorded, std::string_view present) {
  return !present.empty() && present != recorded;
}

}  // namespace gso
