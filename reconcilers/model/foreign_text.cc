// See foreign_text.h.
#include "reconcilers/model/foreign_text.h"

#include <utility>

#include "reconcilers/model/message_text.h"

namespace gso {
namespace {

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
  if (out.find_first_of("\n\t") == std::string::npos) return out;
  const std::string whole = std::exchange(out, {});
  for (const char c : whole) {
    if (c == '\n' || c == '\t') {
      out += c == '\n' ? "\\n" : "\\t";
    } else {
      out += c;
    }
  }
  return out;
}

std::string shown_value(std::string_view value) {
  return beginning(value, kMostValueCharacters);
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view kHarmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,:/=@%+";
  if (!text.empty() && text.find_first_not_of(kHarmless) == std::string_view::npos) return std::string(text);
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string shown_message(std::string_view message) {
  return beginning(message, kMostMessageCharacters);
}

}  // namespace gso
