// The differences between libyaml 0.2.5 and the plugin's YAML library, found by comparing the two on mutated documents.
#include "reconcilers/profile/yaml_dialect.h"

#include <algorithm>
#include <array>
#include <utility>

namespace gso {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

bool is_blank(char c) {
  return kBlanks.find(c) != std::string_view::npos;
}
bool is_indicator(char c) {
  return c == ',' || c == '[' || c == ']';
}

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

std::string replace_all(std::string text, std::string_view from, std::string_view to, std::size_t begin) {
  for (auto at = text.find(from, begin); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

}  // namespace

Stumble stumble_of(std::string_view problem, std::string_view context) {
  if (problem == "found unexpected ':'") {
    return Stumble::colon;
  }
  const bool in_tag = context == "while scanning a tag" || context == "while parsing a tag";
  const bool cut_short =
      problem == "did not find expected whitespace or line break" || problem == "did not find expected tag URI";
  return in_tag && cut_short ? Stumble::tag : Stumble::none;
}

std::optional<std::string> hold(std::string_view text, std::size_t offset, Stumble stumble) {
  const char present = offset < text.size() ? text[offset] : ' ';
  const bool fits = stumble == Stumble::colon ? present == ':' : stumble == Stumble::tag && is_indicator(present);
  if (!fits) {
    return std::nullopt;
  }
  std::string held(text.substr(0, offset));
  held += stumble == Stumble::colon ? kHeldColon : ";";
  held += text.substr(offset + 1);
  return held;
}

// A second byte order mark at the beginning takes a column; and as long as the first piece lasts, the plugin's library
// takes the first character of every line for another one and skips it, be it a line break.
std::string skip_second_mark(std::string_view text) {
  const std::string_view first_piece = text.substr(2 * kByteOrderMark.size(), kReadPiece - 2 * kByteOrderMark.size());
  std::string read(kByteOrderMark);
  read += ' ';
  bool at_start = false;
  for (std::size_t at = 0; at < first_piece.size();) {
    const bool cut_pair = at_start && first_piece.substr(at).starts_with("\r\n");
    const std::size_t line_break = cut_pair ? 0 : break_length(first_piece, at);
    std::size_t length = std::max<std::size_t>(line_break, 1);
    while (line_break == 0 && at + length < first_piece.size() && is_continuation(first_piece[at + length])) {
      ++length;
    }
    const bool refused = static_cast<unsigned char>(first_piece[at]) < ' ' && !cut_pair &&
                         first_piece[at] != '\t';  // And is, skipped or not.
    if (!at_start || line_break > 0 || refused) {
      read += first_piece.substr(at, length);
    }
    read += at_start ? " " : "";
    at_start = !at_start && line_break > 0;
    at += length;
  }
  read += text.substr(2 * kByteOrderMark.size() + first_piece.size());
  return read;
}

std::string hold_marks(std::string_view text) {
  const bool utf16 = text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff");
  const bool two = text.starts_with(kByteOrderMark) && text.substr(kByteOrderMark.size()).starts_with(kByteOrderMark);
  std::string held = two ? skip_second_mark(text) : std::string(text);
  return utf16 ? held : replace_all(std::move(held), kByteOrderMark, kHeldMark, 1);
}

std::string release_held(std::string scalar) {
  return replace_all(replace_all(std::move(scalar), kHeldColon, ":", 0), kHeldMark, kByteOrderMark, 0);
}

std::size_t break_length(std::string_view text, std::size_t at) {
  constexpr std::array<std::string_view, 6> kBreaks{"\r\n", "\r", "\n", "\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9"};
  for (const std::string_view mark : kBreaks) {
    if (text.substr(at).starts_with(mark)) {
      return mark.size();
    }
  }
  return 0;
}

std::size_t offset_of(std::string_view text, Position place) {
  std::size_t at = 0;
  for (int i = 1; i < place.line && at < text.size();) {
    const std::size_t length = break_length(text, at);
    i += length > 0 ? 1 : 0;
    at += std::max<std::size_t>(length, 1);
  }
  for (int i = 1; i < place.column && at < text.size(); ++i) {
    ++at;
    while (at < text.size() && is_continuation(text[at])) {
      ++at;
    }
  }
  return at;
}

Position place_of(std::string_view text, std::size_t offset) {
  Position place{1, 1};
  for (std::size_t at = 0; at < offset && at < text.size();) {
    const std::size_t length = break_length(text, at);
    if (length > 0) {
      place = {place.line + 1, 1};
    } else {
      place.column += is_continuation(text[at]) ? 0 : 1;
    }
    at += std::max<std::size_t>(length, 1);
  }
  return place;
}

std::optional<std::size_t> tag_running_into_indicator(std::string_view text, Position place) {
  std::size_t at = offset_of(text, place);
  const auto here = [&] { return at < text.size() ? text[at] : ' '; };
  if (here() == '&') {  // An anchor may come first.
    at = std::min(text.find_first_of(kBlanks, at), text.size());
    at = std::min(text.find_first_not_of(kBlanks, at), text.size());
  }
  if (here() != '!' || text.substr(at).starts_with("!<")) {
    return std::nullopt;
  }
  for (; !is_blank(here()) && here() != '{' && here() != '}'; ++at) {
    if (is_indicator(here())) {
      return at;
    }
  }
  return std::nullopt;
}

}  // namespace gso
