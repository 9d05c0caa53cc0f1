// See foreign_text.h.
#include "reconcilers/model/foreign_text.h"

#include <utility>

#include "reconcilers/model/message_text.h"

namespace gso {
namespace {

// The separators of lines and paragraphs, U+2028 and U+2029; 0: the text begins with something else.
char line_separator_at(std::string_view text) {
  if (text.starts_with("\xe2\x80\xa8")) return '8';
  return text.starts_with("\xe2\x80\xa9") ? '9' : '\0';
}

// The first so many characters, and "..." in place of the others. Escaping comes afterwards, so that no escape is cut.
std::string beginning(std::string_view text, std::size_t most) {
  // Bytes that only continue characters would count as none.
  constexpr std::size_t kMostBytesOfCharacter = 4;
  const std::string_view shown = first_characters(first_bytes(text, most * kMostBytesOfCharacter), most);
  return one_line(shown) + (shown.size() < text.size() ? "..." : "");
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string out = printable(text);
  constexpr std::string_view kSpecial = "\n\t\xe2";
  if (out.find_first_of(kSpecial) == std::string::npos) return out;
  const std::string whole = std::exchange(out, {});
  for (std::size_t at = 0; at < whole.size(); ++at) {
    const char separator = line_separator_at(std::string_view(whole).substr(at));
    if (separator != '\0') {
      out += std::string("\\u202") + separator;
      at += 2;
    } else if (whole[at] == '\n' || whole[at] == '\t') {
      out += whole[at] == '\n' ? "\\n" : "\\t";
    } else {
      out += whole[at];
    }
  }
  return out;
}

std::string shown_value(std::string_view value) {
  return beginning(value, kMostValueCharacters);
}

std::string shown_message(std::string_view message) {
  return beginning(message, kMostMessageCharacters);
}

}  // namespace gso
