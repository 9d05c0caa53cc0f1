// How long messages in statuses and annotations may become: what people can read, and the API server takes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gso {

// Of a condition, an entry of a status, or the annotation gpusharing.dev/message.
inline constexpr std::size_t kMostMessageBytes = 1024;
// Names in one message.
inline constexpr std::size_t kMostNames = 5;

// At most kMostMessageBytes of it; what is cut ends with "...". Never in the middle of a character.
[[nodiscard]] std::string cut_message(std::string_view message);

// "a, b, c, d, e and 7 more": the first five. `total`: how many there are where `names` has not all of them.
[[nodiscard]] std::string first_names(const std::vector<std::string>& names, std::size_t total = 0);

}  // namespace gso
