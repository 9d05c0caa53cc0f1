// See unprintable.h.
#include "reconcilers/model/unprintable.h"

#include <algorithm>
#include <array>

namespace gso {

namespace {

struct Range {
  char32_t first;
  char32_t last;
};
// Beyond ASCII. Emoji and scripts that join letters by U+200C and U+200D are shown with these escaped.
constexpr std::array<Range, 10> kRanges{{
    {0x80, 0x9f},      // C1 controls: U+009B begins an escape sequence as ESC [ does.
    {0xad, 0xad},      // Soft hyphen.
    {0x61c, 0x61c},    // Arabic letter mark.
    {0x180e, 0x180e},  // Mongolian vowel separator.
    {0x200b, 0x200f},  // Zero width, joiners, marks of direction.
    {0x2028, 0x202e},  // Separators of lines and paragraphs, embeddings and overrides.
    {0x2060, 0x2064},  // Word joiner, invisible operators.
    {0x2066, 0x206f},  // Isolates, deprecated format characters.
    {0xfeff, 0xfeff},  // Byte order mark.
    {0xfff9, 0xfffb},  // Interlinear annotations.
}};

// The character at the beginning of the text, if it has two or three bytes; others are not in the table.
Unprintable decode(std::string_view text) {
  const auto byte = [&](std::size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U; };
  const auto continues = [&](std::size_t at) { return (byte(at) & 0xc0U) == 0x80U; };
  const unsigned first = byte(0);
  if ((first & 0xe0U) == 0xc0U && continues(1)) return {2, ((first & 0x1fU) << 6U) | (byte(1) & 0x3fU)};
  if ((first & 0xf0U) == 0xe0U && continues(1) && continues(2))
    return {3, ((first & 0x0fU) << 12U) | ((byte(1) & 0x3fU) << 6U) | (byte(2) & 0x3fU)};
  return {};
}

}  // namespace

Unprintable unprintable_at(std::string_view text) {
  if (text.empty()) return {};
  const auto first = static_cast<unsigned char>(text.front());
  if ((first < 0x20 && first != '\n' && first != '\t') || first == 0x7f) return {1, first};
  const Unprintable found = decode(text);
  const auto holds = [&](const Range& range) {
    return found.character >= range.first && found.character <= range.last;
  };
  return std::ranges::any_of(kRanges, holds) ? found : Unprintable{};
}

}  // namespace gso
