// Text for people: names and numbers in sentences, and what others wrote, cut and made printable.
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gso {

// --- Characters that a terminal does not show as themselves: they move its cursor, end a line, change the direction
// of writing, or are invisible. What prints text escapes them: message_text.h for people, json_access.h for
// programs.

struct Unprintable {
  std::size_t bytes = 0;  // In UTF-8. 0: the text begins with another character.
  char32_t character = 0;
};

// Such a character at the beginning of the text. Newline and tab are none.
[[nodiscard]] Unprintable unprintable_at(std::string_view text);

// --- Text that others have written, within a message of the operator: labels, annotations, conditions, keys and
// values of ConfigMaps, whatever a file says. None of it must begin a line of its own, or be longer than people read.
// A message shows such a value by shown_value(). What collects messages (PlanDraft, audit, explain, lint's output) and
// what prints lines (print_line(), tables) escapes whatever is left.

// Of one value in a message.
inline constexpr std::size_t kMostValueCharacters = 256;
// Of a message that no API limits.
inline constexpr std::size_t kMostMessageCharacters = 4096;

// printable(), and what ends a line or moves within one as "\n", "\t" or "\u2028": the text is one line.
[[nodiscard]] std::string one_line(std::string_view text);

// At most kMostValueCharacters of the value, on one line; a cut one ends with "...". Never cut in the middle of a
// character.
[[nodiscard]] std::string shown_value(std::string_view value);

// The text as one word of a shell, for a command that people paste: as it is if it has only letters, digits and
// "-_.,:/=@%+", else in single quotes.
[[nodiscard]] std::string shell_word(std::string_view text);

// A message, on one line and at most kMostMessageCharacters long: whoever has made it, and of what.
[[nodiscard]] std::string shown_message(std::string_view message);

// --- Messages for people, in statuses, annotations, Events and on a terminal: without control characters, and in
// statuses and annotations no longer than people read and the API server accepts.

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

// The name, or "(none)" where there is none: a sentence has no hole.
[[nodiscard]] std::string_view or_none(std::string_view name);

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

// --- JSON that is printed: a terminal may be what shows it.

// The JSON text with the characters that are not printable as "\u202e" where its strings have them. It is read back as
// the same values. Such an escape is one of YAML's double quotes too.
[[nodiscard]] std::string printable_json(std::string_view json);

}  // namespace gso
