// The differences between libyaml 0.2.5 and the plugin's YAML library, found by comparing the two on mutated documents.
#include "reconcilers/profile/yaml_dialect.h"

#include <algorithm>
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
  const char stands = offset < text.size() ? text[offset] : ' ';
  const bool fits = stumble == Stumble::colon ? stands == ':' : stumble == Stumble::tag && is_indicator(stands);
  if (!fits) {
    return std::nullopt;
  }
  std::string held(text.substr(0, offset));
  held += stumble == Stumble::colon ? kHeldColon : ";";
  held += text.substr(offset + 1);
  return held;
}

std::string hold_marks(std::string_view text) {
  const bool utf16 = text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff");
  std::string held(text);
  return utf16 ? held : replace_all(std::move(held), kByteOrderMark, kHeldMark, 1);
}

std::string release_held(std::string scalar) {
  return replace_all(replace_all(std::move(scalar), kHeldColon, ":", 0), kHeldMark, kByteOrderMark, 0);
}

std::size_t length_read(std::string_view text) {
  std::size_t at = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  while (at < text.size()) {
    at = std::min(text.find_first_not_of(kBlanks, at), text.size());
    const std::string_view rest = text.substr(at);
    if (rest.starts_with('#') || rest.starts_with('%')) {
      at = std::min(text.find('\n', at), text.size());
    } else if (rest.starts_with("---") && rest.size() > 3 && is_blank(rest[3])) {
      at += 3;
    } else {
      break;
    }
  }
  const char open = at < text.size() ? text[at] : ' ';
  const std::size_t close =
      open == '{' || open == '[' ? text.find_first_not_of(kBlanks, at + 1) : std::string_view::npos;
  const bool empty = close != std::string_view::npos && text[close] == (open == '{' ? '}' : ']');
  if (!empty) {
    return text.size();
  }
  const auto behind = text.find_first_not_of(" \t", close + 1);
  const bool nothing =
      behind == std::string_view::npos || text[behind] == '\n' || text[behind] == '\r' || text[behind] == '#';
  return nothing ? text.size() : close + 1;
}

std::size_t offset_of(std::string_view text, int line, int column) {
  std::size_t at = 0;
  for (int i = 1; i < line && at < text.size(); ++i) {
    const auto end = text.find_first_of("\r\n", at);
    if (end == std::string_view::npos) {
      return text.size();
    }
    at = end + (text.substr(end).starts_with("\r\n") ? 2 : 1);
  }
  for (int i = 1; i < column && at < text.size(); ++i) {
    ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) {
      ++at;
    }
  }
  return at;
}

std::optional<std::size_t> tag_running_into_indicator(std::string_view text, int line, int column) {
  std::size_t at = offset_of(text, line, column);
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
