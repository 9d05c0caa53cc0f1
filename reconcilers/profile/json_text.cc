// JSON manifests for a YAML reader: where the two languages read the same text differently.
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "reconcilers/profile/yaml_node.h"

namespace gso {
namespace {

constexpr std::uint32_t kReplacement = 0xfffd;
constexpr std::string_view kJsonByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kJsonBlanks = " \t\r\n";

bool begins_as_json(std::string_view text) {
  text.remove_prefix(text.starts_with(kJsonByteOrderMark) ? kJsonByteOrderMark.size() : 0);
  const auto first = text.find_first_not_of(kJsonBlanks);
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

// The code of "\uXXXX" at this place.
std::optional<std::uint32_t> unicode_escape(std::string_view text, std::size_t at) {
  constexpr std::size_t kLength = 6;
  if (at + kLength > text.size() || text[at] != '\\' || text[at + 1] != 'u') return std::nullopt;
  std::uint32_t code = 0;
  const char* const end = text.data() + at + kLength;
  const auto read = std::from_chars(text.data() + at + 2, end, code, 16);
  return read.ec == std::errc() && read.ptr == end ? std::optional(code) : std::nullopt;
}

bool is_high(std::uint32_t code) {
  return code >= 0xd800 && code < 0xdc00;
}

bool is_low(std::uint32_t code) {
  return code >= 0xdc00 && code < 0xe000;
}

// How many bytes stand here for a character that YAML does not take as text, and which: DEL, C1 controls (U+0085 ends a
// line), U+2028, U+2029, U+FEFF, U+FFFE, U+FFFF.
std::pair<std::size_t, std::uint32_t> special(std::string_view rest) {
  const auto byte = [&](std::size_t i) { return i < rest.size() ? static_cast<unsigned char>(rest[i]) : 0U; };
  if (byte(0) == 0x7f) {
    return {1, 0x7f};
  }
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) <= 0x9f) {
    return {2, byte(1)};
  }
  const std::uint32_t three = byte(0) << 16 | byte(1) << 8 | byte(2);
  switch (three) {
    case 0xe280a8:
      return {3, 0x2028};
    case 0xe280a9:
      return {3, 0x2029};
    case 0xefbbbf:
      return {3, 0xfeff};
    case 0xefbfbe:
      return {3, 0xfffe};
    case 0xefbfbf:
      return {3, 0xffff};
    default:
      return {0, 0};
  }
}

// Copies the escape that begins at `at`, and returns its length.
std::size_t copy_escape(std::string_view text, std::size_t at, std::string& out, bool& changed) {
  const auto code = unicode_escape(text, at);
  if (!code || (!is_high(*code) && !is_low(*code))) {
    const std::size_t length = std::min<std::size_t>(2, text.size() - at);
    out += text.substr(at, length);
    return length;
  }
  changed = true;
  const auto low = unicode_escape(text, at + 6);
  if (is_high(*code) && low && is_low(*low)) {
    out += fmt::format("\\U{:08x}", 0x10000 + ((*code - 0xd800) << 10) + (*low - 0xdc00));
    return 12;
  }
  out += fmt::format("\\u{:04x}", kReplacement);
  return 6;
}

}  // namespace

std::optional<std::string> json_for_yaml(std::string_view text) {
  if (!begins_as_json(text)) return std::nullopt;
  std::string out;
  out.reserve(text.size() + 64);
  bool changed = false;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size();) {
    if (in_string && text[at] == '\\') {
      at += copy_escape(text, at, out, changed);
      continue;
    }
    if (in_string) {
      if (const auto [length, code] = special(text.substr(at)); length > 0) {
        out += fmt::format("\\u{:04x}", code);
        at += length;
        changed = true;
        continue;
      }
    }
    in_string = in_string != (text[at] == '"');
    out += text[at];
    ++at;
  }
  return changed ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace gso
