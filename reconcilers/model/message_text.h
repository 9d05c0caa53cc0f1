// Messages for people, in statuses, annotations, Events and on a terminal: without control characters, and in statuses
// and annotations no longer than people read and the API server accepts.
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gso {

// Of a condition, an entry of a status, or the annotation gpusharing.dev/message.
inline constexpr std::size_t kMostMessageBytes = 1024;
// The number of names in one message.
inline constexpr std::size_t kMostNames = 5;

// The text with control characters (all but newline and tab) and characters that change the direction of writing as
// "\x1b" or "\u202e": text that came from the cluster cannot move a terminal's cursor or show other words than it has.
// Everything else stays as it is.
[[nodiscard]] std::string printable(std::string_view text);

// The beginning of the text: at most so many bytes of UTF-8, not cut in the middle of a character; or so many
// characters. last_bytes(): its end.
[[nodiscard]] std::string_view first_bytes(std::string_view text, std::size_t most);
[[nodiscard]] std::string_view last_bytes(std::string_view text, std::size_t most);
[[nodiscard]] std::string_view first_characters(std::string_view text, std::size_t most);

// At most kMostMessageBytes of the printable text; a cut text ends with "...". Never cut in the middle of a character.
[[nodiscard]] std::string cut_message(std::string_view message);

// "a, b, c, d, e and 7 more": the first five. `total`: the number of all names, if `names` has only some of them.
[[nodiscard]] std::string first_names(const std::vector<std::string>& names, std::size_t total = 0);

// "1 node", "2 nodes", "0 nodes": of a noun whose plural takes an "s" ("more node" gives "1 more node").
template <std::integral Count>
[[nodiscard]] std::string counted(Count count, std::string_view noun) {
  std::string out = std::to_string(count);
  out.append(" ").append(noun);
  if (count != 1) out += 's';
  return out;
}

}  // namespace gso
