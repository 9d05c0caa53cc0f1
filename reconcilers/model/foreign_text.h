// Text that others have written, within a message of the operator: labels, annotations, conditions, keys and values of
// ConfigMaps, whatever a file says. None of it must begin a line of its own, or be longer than people read. A message
// shows such a value by shown_value(). What collects messages (PlanDraft, audit, explain, lint's output) and what
// prints lines (print_line(), tables) escapes whatever is left.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gso {

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

}  // namespace gso
