#include "reconcilers/model/message_text.h"

#include <fmt/format.h>

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
  std::string out;
  for (const char c : printable(text)) {
    if (c == '\n' || c == '\t') out += '\\';
    out += c == '\n' ? 'n' : c == '\t' ? 't' : c;
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

namespace {

// "\x1b", "\u202e"
std::string escape_of(char32_t character) {
  const auto code = static_cast<unsigned>(character);
  return code < 0x100 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
}

// A byte of UTF-8 that is not the first one of its character.
bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U;
}

// Bytes of the character at the beginning of the text, by its first byte.
std::size_t length_of_character(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t length = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  std::size_t out = 1;
  while (out < std::min(length, text.size()) && continues_character(text[out])) ++out;
  return out;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto plain = std::ranges::find_if_not(text, [](char c) { return c >= ' ' && c <= '~'; }) - text.begin();
    out += text.substr(0, static_cast<std::size_t>(plain));
    text.remove_prefix(static_cast<std::size_t>(plain));
    if (text.empty()) break;
    const Unprintable found = unprintable_at(text);
    const auto first = static_cast<unsigned char>(text.front());
    const std::size_t bytes = found.bytes > 0 ? found.bytes : length_of_character(text);
    if (found.bytes > 0)
      out += escape_of(found.character);
    else if (bytes == 1 && first >= 0x80 && first < 0xa0)
      out += fmt::format("\\x{:02x}", first);  // A C1 character of a text that is not UTF-8.
    else
      out += text.substr(0, bytes);
    text.remove_prefix(bytes);
  }
  return out;
}

std::string_view first_bytes(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && continues_character(text[most])) --most;
  return text.substr(0, most);
}

std::string_view last_bytes(std::string_view text, std::size_t most) {
  std::string_view out = text.substr(text.size() - std::min(text.size(), most));
  while (!out.empty() && continues_character(out.front())) out.remove_prefix(1);
  return out;
}

std::string_view first_characters(std::string_view text, std::size_t most) {
  std::size_t characters = 0;
  const auto end = std::ranges::find_if(text, [&](char c) { return !continues_character(c) && ++characters > most; });
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

std::string cut_message(std::string_view text) {
  std::string message = one_line(text);
  if (message.size() <= kMostMessageBytes) return message;
  constexpr std::string_view kMore = "...";
  return std::string(first_bytes(message, kMostMessageBytes - kMore.size())).append(kMore);
}

std::string_view or_none(std::string_view name) {
  return name.empty() ? "(none)" : name;
}

std::string first_names(const std::vector<std::string>& names, std::size_t total) {
  std::string out;
  const std::size_t shown = std::min(names.size(), kMostNames);
  for (std::size_t i = 0; i < shown; ++i) out += (i == 0 ? "" : ", ") + shown_value(names[i]);
  const std::size_t all = std::max(names.size(), total);
  if (all > shown) out += fmt::format("{}and {} more", shown == 0 ? "" : " ", all - shown);
  return out;
}

std::string printable_json(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const Unprintable found = unprintable_at(json);
    if (found.bytes > 0)
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(found.character));
    else
      out += json.front();
    json.remove_prefix(found.bytes > 0 ? found.bytes : 1);
  }
  return out;
}

}  // namespace gso
