// Finds an empty root, and reads the one token behind it with libyaml's scanner.
#include "reconcilers/profile/yaml_empty_root.h"

#include <yaml.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "reconcilers/profile/yaml_dialect.h"

namespace gso {
namespace {

// A key stands in one line, and its ':' is at most this many characters behind its beginning.
constexpr std::size_t kLongestKey = 1024;

// What the scanner is given before the rest of the line, so that it expects no key there either.
constexpr std::string_view kLead = "--- ";

bool begins_with_blank_or_break(std::string_view text) {
  return text.empty() || text.front() == ' ' || text.front() == '\t' || break_length(text, 0) > 0;
}

std::size_t end_of_line(std::string_view text, std::size_t at) {
  while (at < text.size() && break_length(text, at) == 0) {
    ++at;
  }
  return at;
}

// Behind the tag and the anchor that may stand here.
std::size_t behind_properties(std::string_view text, std::size_t at) {
  while (at < text.size() && (text[at] == '!' || text[at] == '&')) {
    at = std::min(text.find_first_of(" \t\r\n", at), text.size());
    at = std::min(text.find_first_not_of(" \t", at), text.size());
  }
  return at;
}

// The offset of the first bracket, where nothing but empty lines, comments, directives, one "---" and the properties of
// the node stand before it, and only spaces in its line. Elsewhere it could not be a key.
std::optional<std::size_t> opening_bracket(std::string_view text) {
  std::size_t at = text.starts_with("\xef\xbb\xbf") ? 3 : 0;
  bool started = false;
  while (at < text.size()) {
    const std::size_t first = std::min(text.find_first_not_of(' ', at), text.size());
    const std::string_view rest = text.substr(first);
    if (rest.starts_with('{') || rest.starts_with('[')) {
      return first;
    }
    const bool starts = first == at && rest.starts_with("---") && begins_with_blank_or_break(rest.substr(3));
    std::size_t skipped = first;
    if (starts && !started) {
      started = true;
      skipped = behind_properties(text, std::min(text.find_first_not_of(" \t", first + 3), text.size()));
    } else if (!started && first == at && rest.starts_with('%')) {
      skipped = end_of_line(text, first);
    } else {
      skipped = behind_properties(text, first);
    }
    if (text.substr(skipped).starts_with('#')) {
      skipped = end_of_line(text, skipped);
    }
    const std::size_t length = break_length(text, skipped);
    if (length == 0) {
      return std::nullopt;
    }
    at = skipped + length;
  }
  return std::nullopt;
}

// Gives libyaml the rest of the text in the pieces in which the plugin's library reads the whole.
struct Rest {
  std::string_view text;
  std::size_t read = 0;
  std::size_t next_piece = 0;

  static int read_piece(void* data, unsigned char* buffer, std::size_t size, std::size_t* size_read) {
    auto& self = *static_cast<Rest*>(data);
    const std::size_t count = std::min({size, self.next_piece, self.text.size() - self.read});
    std::memcpy(buffer, self.text.data() + self.read, count);
    self.read += count;
    self.next_piece = kReadPiece;
    *size_read = count;
    return 1;
  }
};

// Why the token behind kLead cannot be read.
std::optional<YamlError> error_of_next_token(Rest rest, Position behind) {
  yaml_parser_t parser;
  yaml_parser_initialize(&parser);
  yaml_parser_set_input(&parser, &Rest::read_piece, &rest);
  std::optional<YamlError> error;
  for (int tokens = 0; tokens < 3 && !error; ++tokens) {  // The beginnings of stream and document, and that one.
    yaml_token_t token;
    if (yaml_parser_scan(&parser, &token) != 0) {
      yaml_token_delete(&token);
      continue;
    }
    const std::string problem = parser.problem == nullptr ? "cannot be read" : parser.problem;
    const Stumble stumble = stumble_of(problem, parser.context == nullptr ? "" : parser.context);
    const int line = static_cast<int>(parser.problem_mark.line);
    const int column = static_cast<int>(parser.problem_mark.column);
    if (hold(rest.text, offset_of(rest.text, {line + 1, column + 1}), stumble)) {
      break;  // The plugin's library does not stumble there.
    }
    error = YamlError{"SyntaxError", {behind.line + line, column + 1}, problem};
    if (line == 0) {
      error->at.column = std::max(behind.column, behind.column + column - static_cast<int>(kLead.size()));
    }
  }
  yaml_parser_delete(&parser);
  return error;
}

}  // namespace

std::optional<EmptyRoot> find_empty_root(std::string_view text) {
  const auto open = opening_bracket(text);
  if (!open) {
    return std::nullopt;
  }
  const std::size_t close = text.find_first_not_of(" \t", *open + 1);
  if (close == std::string_view::npos || text[close] != (text[*open] == '{' ? '}' : ']')) {
    return std::nullopt;
  }
  const std::size_t next = text.find_first_not_of(" \t", close + 1);
  if (next == std::string_view::npos || next - *open > kLongestKey || text[next] == '#' ||
      break_length(text, next) > 0) {
    return std::nullopt;
  }
  EmptyRoot found;
  found.length = close + 1;
  found.behind = place_of(text, close + 1);
  std::string rest = std::string(kLead) + hold_marks(text).substr(close + 1);
  if (text[next] == ':' && begins_with_blank_or_break(text.substr(next + 1))) {
    rest[kLead.size() + next - close - 1] = ',';  // Read as one token, as the plugin's library does with this ':'.
  }
  const std::size_t first_piece = kReadPiece - (close + 1) % kReadPiece;
  found.error = error_of_next_token({rest, 0, kLead.size() + first_piece}, found.behind);
  return found;
}

}  // namespace gso
