// The differences between libyaml 0.2.5 and the plugin's YAML library, found by comparing the two on mutated documents.
#include "reconcilers/profile/yaml_dialect.h"

#include <algorithm>
#include <utility>

namespace gso {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

bool is_blank(char c) { return kBlanks.find(c) != std::string_view::npos; }
bool is_indicator(char c) { return c == ',' || c == '[' || c == ']'; }

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
  return problem == "did not find expected whitespace or line break" && context == "while scanning a tag" ? Stumble::tag
                                                                                                         : Stumble::none;
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
