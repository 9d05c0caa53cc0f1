// Length limits for messages in statuses and annotations: readable for people, and accepted by the API server.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gso {

// Of a condition, an entry of a status, or the annotation gpusharing.dev/message.
inline constexpr std::size_t kMostMessageBytes = 1024;
// The number of names in one message.
inline constexpr std::size_t kMostNames = 5;

// At most kMostMessageBytes of the text; a cut text ends with "...". Never cut in the middle of a character.
[[nodiscard]] std::string cut_message(std::string_view message);

// "a, b, c, d, e and 7 more": the first five. `total`: the number of all names, if `names` has only some of them.
[[nodiscard]] std::string first_names(const std::vector<std::string>& names, std::size_t total = 0);

}  // namespace gso
