// The message for a text that is no YAML: libyaml reports where it stopped, which is often a line after the wrong one.
// Three mistakes are recognised: a colon that is missing or lacks its space, a tab, a wrong indent.
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "reconcilers/model/message_text.h"
#include "reconcilers/profile/yaml_node.h"

namespace gso {
namespace {

constexpr std::string_view kYamlBlanks = " \t";
constexpr std::size_t kShortText = 32;  // Longer ones are not quoted.

// The line that holds this offset, without its break.
std::string_view line_at(std::string_view text, std::size_t offset) {
  const auto before = text.substr(0, offset).find_last_of("\r\n");
  const auto from = before == std::string_view::npos ? 0 : before + 1;
  return text.substr(from, text.find_first_of("\r\n", from) - from);
}

bool is_blank(std::string_view line) {
  const auto first = line.find_first_not_of(kYamlBlanks);
  return first == std::string_view::npos || line[first] == '#';
}

// How many bytes the line break at this offset has; 0 where none is.
std::size_t break_length(std::string_view text, std::size_t at) {
  for (const std::string_view mark : {"\r\n", "\r", "\n", "\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9"})
    if (text.substr(at).starts_with(mark)) return mark.size();
  return 0;
}

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

std::string_view without_end(std::string_view text) {
  return text.substr(0, text.find_last_not_of(kYamlBlanks) + 1);
}

// What is too long to be quoted is not.
std::string_view short_text(std::string_view text) {
  return text.size() > kShortText ? std::string_view("…") : text;
}

// The place after the last token: blanks, empty lines and lines that are comments do not count.
Position after_last_token(std::string_view text) {
  while (true) {
    const auto last = text.find_last_not_of(" \t\r\n");
    if (last == std::string_view::npos) return {1, 1};
    text = text.substr(0, last + 1);
    const std::string_view line = line_at(text, last);
    if (!is_blank(line)) return place_of(text, text.size());
    text.remove_suffix(line.size());
  }
}

struct BlockEntry {
  std::size_t indent = 0;  // Columns before the key.
  std::string_view key = {};
  std::size_t colon = 0;
  std::size_t value = std::string_view::npos;  // Where the value begins; npos if the line has none.

  [[nodiscard]] bool has_value() const { return value != std::string_view::npos; }
  [[nodiscard]] bool lacks_space() const { return value == colon + 1; }
};

// "- key: value"; nullopt for a line that is no entry of a mapping.
std::optional<BlockEntry> entry_of(std::string_view line) {
  BlockEntry entry{.indent = std::min(line.find_first_not_of(kYamlBlanks), line.size())};
  while (line.substr(entry.indent).starts_with("- "))
    entry.indent = std::min(line.find_first_not_of(kYamlBlanks, entry.indent + 1), line.size());
  const std::string_view rest = line.substr(entry.indent);
  const bool quoted = rest.starts_with('"') || rest.starts_with('\'');
  const std::size_t behind = quoted ? line.find(line[entry.indent], entry.indent + 1) : entry.indent;
  entry.colon = line.find(':', behind);
  if (entry.colon == std::string_view::npos || entry.colon == entry.indent || behind == std::string_view::npos)
    return std::nullopt;
  entry.key = line.substr(entry.indent, entry.colon - entry.indent);
  if (!quoted && entry.key.find_first_of(" \t\"'{[#,") != std::string_view::npos) return std::nullopt;
  entry.value = line.find_first_not_of(kYamlBlanks, entry.colon + 1);
  if (entry.has_value() && line[entry.value] == '#') entry.value = std::string_view::npos;
  return entry;
}

std::string with_space(const BlockEntry& entry, std::string_view line) {
  return fmt::format("put a space after the colon: `{}: {}`", shown_value(entry.key),
                     short_text(without_end(line.substr(entry.value))));
}

// A simple key that never got its colon is often an entry whose colon lacks the space, or no entry at all: dots that
// stand for what a document leaves out.
void blame_missing_colon(std::string_view text, Position key_at, YamlError& error) {
  const std::size_t begin = offset_of(text, {key_at.line, 1});
  const std::string_view line = line_at(text, begin);
  const auto entry = entry_of(line);
  if (!line.contains(':')) {
    const std::string_view found = line.substr(std::min(offset_of(text, key_at) - begin, line.size()));
    error.at = key_at;
    error.message = fmt::format("expected `key: value`, found `{}`", short_text(without_end(found)));
  } else if (entry && entry->has_value() && entry->lacks_space()) {
    error.at = place_of(text, begin + entry->value);
    error.message = with_space(*entry, line);
  }
}

// The line before may be the wrong one: it gives a key a value where the next line nests something, or it lacks the
// space that makes it an entry.
void blame_line_before(std::string_view text, const YamlProblem& found, YamlError& error) {
  const std::size_t problem = offset_of(text, found.at);
  const std::string_view here = line_at(text, problem);
  const std::string_view before = text.substr(0, static_cast<std::size_t>(here.data() - text.data()));
  const std::size_t begin = offset_of(text, {after_last_token(before).line, 1});
  const std::string_view line = line_at(text, begin);
  const auto entry = is_blank(line) ? std::nullopt : entry_of(line);
  if (!entry || !entry->has_value()) return;
  if (entry->lacks_space()) {
    error.cause_message = with_space(*entry, line);
  } else if (std::min(here.find_first_not_of(' '), here.size()) > entry->indent) {
    error.cause_message = fmt::format("\"{}\" has a value here, so line {} cannot be nested below it",
                                      shown_value(entry->key), found.at.line + found.lines_before);
  }
  if (!error.cause_message.empty()) error.cause = place_of(text, begin + entry->value);
}

}  // namespace

YamlError explain_syntax_error(std::string_view text, const YamlProblem& found) {
  const std::size_t offset = offset_of(text, found.at);
  const std::string_view rest = text.substr(offset);
  YamlError error{"SyntaxError", found.at, found.problem, {}, ""};
  if (!found.context.empty())
    error.message = fmt::format("{} {} (which begins in line {})", found.problem, found.context,
                                found.context_at.line + found.lines_before);
  const bool incomplete = found.problem.starts_with("did not find expected ',' or");
  const bool over = rest.empty() || (found.at.column == 1 && (rest.starts_with("---") || rest.starts_with("...")));
  if (found.context.contains("quoted scalar")) {
    error.at = found.context_at;  // Where the quote opens: it closes too late, or never.
  } else if (incomplete || (over && found.problem == "did not find expected node content")) {
    error.at = after_last_token(text.substr(0, offset));
    // It would begin behind the end of the text.
    if (found.context_at.line > error.at.line) error.message = fmt::format("{} {}", found.problem, found.context);
  } else if (found.problem == "did not find expected node content" && std::string_view(",]}").contains(rest.front())) {
    error.message = fmt::format("a value is missing before `{}`", rest.front());
  } else if (found.problem == "mapping values are not allowed in this context" ||
             found.problem == "did not find expected key") {
    blame_line_before(text, found, error);
  } else if (found.problem == "could not find expected ':'" && !found.context.empty()) {
    blame_missing_colon(text, found.context_at, error);
  } else if (found.problem == "found character that cannot start any token" && rest.starts_with('\t')) {
    error.message = "a tab cannot indent a line; use spaces";
  }
  return error;
}

std::size_t offset_of(std::string_view text, Position place) {
  std::size_t at = 0;
  for (int i = 1; i < place.line && at < text.size();) {
    const std::size_t length = break_length(text, at);
    i += length > 0 ? 1 : 0;
    at += std::max<std::size_t>(length, 1);
  }
  for (int i = 1; i < place.column && at < text.size(); ++i) {
    do ++at;
    while (at < text.size() && is_continuation(text[at]));
  }
  return at;
}

Position place_of(std::string_view text, std::size_t offset) {
  Position place{1, 1};
  for (std::size_t at = 0; at < offset && at < text.size();) {
    const std::size_t length = break_length(text, at);
    if (length > 0)
      place = {place.line + 1, 1};
    else
      place.column += is_continuation(text[at]) ? 0 : 1;
    at += std::max<std::size_t>(length, 1);
  }
  return place;
}

}  // namespace gso
