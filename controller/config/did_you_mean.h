// "; did you mean 'lint'?" for a mistyped word.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gso {

// Names the most similar of `words`, as the end of a sentence; empty if none is similar.
[[nodiscard]] std::string did_you_mean(std::string_view mistyped, const std::vector<std::string>& words);

}  // namespace gso
