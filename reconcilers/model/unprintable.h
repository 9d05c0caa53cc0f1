// Characters that a terminal does not show as themselves: they move its cursor, end a line, change the direction of
// writing, or are invisible. What prints text escapes them: message_text.h for people, printable_json.h for programs.
#pragma once

#include <cstddef>
#include <string_view>

namespace gso {

struct Unprintable {
  std::size_t bytes = 0;  // In UTF-8. 0: the text begins with another character.
  char32_t character = 0;
};

// Such a character at the beginning of the text. Newline and tab are none.
[[nodiscard]] Unprintable unprintable_at(std::string_view text);

}  // namespace gso
