// See message_text.h.
#include "reconcilers/model/message_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "reconcilers/model/foreign_text.h"
#include "reconcilers/model/unprintable.h"

namespace gso {

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
    if (found.bytes > 0) {
      out += escape_of(found.character);
    } else if (bytes == 1 && first >= 0x80 && first < 0xa0) {
      out += fmt::format("\\x{:02x}", first);  // A C1 character of a text that is not UTF-8.
    } else {
      out += text.substr(0, bytes);
    }
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

std::string first_names(const std::vector<std::string>& names, std::size_t total) {
  std::string out;
  const std::size_t shown = std::min(names.size(), kMostNames);
  for (std::size_t i = 0; i < shown; ++i) out += (i == 0 ? "" : ", ") + shown_value(names[i]);
  const std::size_t all = std::max(names.size(), total);
  if (all > shown) out += fmt::format("{}and {} more", shown == 0 ? "" : " ", all - shown);
  return out;
}

}  // namespace gso
