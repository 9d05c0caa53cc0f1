// Rules that find the line which is wrong.
#include "reconcilers/profile/yaml_syntax_error.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "reconcilers/model/foreign_text.h"
#include "reconcilers/profile/json_text.h"
#include "reconcilers/profile/yaml_dialect.h"

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

// The place after the last token: blanks, empty lines and lines that are comments do not count.
Position after_last_token(std::string_view text) {
  while (true) {
    const auto last = text.find_last_not_of(" \t\r\n");
    if (last == std::string_view::npos) {
      return {1, 1};
    }
    text = text.substr(0, last + 1);
    const std::string_view line = line_at(text, last);
    if (!is_blank(line)) {
      return place_of(text, text.size());
    }
    text.remove_suffix(line.size());
  }
}

// How many columns precede the key of the block entry in this line, or its last "- " if it has no key. `end`: where the
// value of the entry begins. nullopt if the value begins the line.
std::optional<std::size_t> block_indent(std::string_view line, std::size_t end) {
  std::size_t at = std::min(line.find_first_not_of(kYamlBlanks), end);
  if (at == end) {
    return std::nullopt;
  }
  while (line.substr(at).starts_with("- ")) {
    const std::size_t next = std::min(line.find_first_not_of(kYamlBlanks, at + 1), end);
    if (next == end) {
      break;
    }
    at = next;
  }
  return at;
}

// Where the closing bracket is missing: before the first line that is not indented deeper than the block entry which
// has the collection as its value. nullopt if no such line precedes the problem.
std::optional<Position> missing_bracket(std::string_view text, std::size_t problem, Position flow) {
  const std::size_t open = offset_of(text, flow);
  const auto indent = block_indent(line_at(text, open), static_cast<std::size_t>(flow.column) - 1);
  std::size_t at = indent ? text.find('\n', open) : std::string_view::npos;
  for (; at < problem; at = text.find('\n', at + 1)) {
    const std::string_view line = line_at(text, at + 1);
    const auto first = line.find_first_not_of(" \r");
    if (at + 1 < text.size() && first <= *indent && !is_blank(line) && line[first] != ']' && line[first] != '}') {
      return after_last_token(text.substr(0, at));
    }
  }
  return std::nullopt;
}

struct BlockEntry {
  std::size_t indent = 0;
  std::string_view key;
  std::size_t colon = 0;
  std::size_t value = std::string_view::npos;  // Where the value begins; npos if the line has none.
};

std::optional<BlockEntry> entry_of(std::string_view line) {
  BlockEntry entry;
  entry.indent = block_indent(line, line.size()).value_or(0);
  const bool quoted = line.substr(entry.indent).starts_with('"') || line.substr(entry.indent).starts_with('\'');
  const std::size_t behind = quoted ? line.find(line[entry.indent], entry.indent + 1) : entry.indent;
  entry.colon = line.find(':', behind);
  if (entry.colon == std::string_view::npos || entry.colon == entry.indent || behind == std::string_view::npos) {
    return std::nullopt;
  }
  entry.key = line.substr(entry.indent, entry.colon - entry.indent);
  if (!quoted && entry.key.find_first_of(" \t\"'{[#,") != std::string_view::npos) {
    return std::nullopt;
  }
  entry.value = line.find_first_not_of(kYamlBlanks, entry.colon + 1);
  if (entry.value != std::string_view::npos && line[entry.value] == '#') {
    entry.value = std::string_view::npos;
  }
  return entry;
}

bool lacks_space(const BlockEntry& entry) {
  return entry.value == entry.colon + 1;
}

std::string with_space(const BlockEntry& entry, std::string_view line) {
  std::string_view value = line.substr(entry.value);
  value = value.substr(0, value.find_last_not_of(kYamlBlanks) + 1);
  return fmt::format("put a space after the colon: `{}: {}`", shown_value(entry.key),
                     value.size() > kShortText ? std::string_view("…") : value);
}

// A simple key that never got its colon is often an entry whose colon lacks the space, or no entry at all: dots that
// stand for what a document leaves out.
void blame_missing_colon(std::string_view text, Position key_at, YamlError& error) {
  const std::size_t begin = offset_of(text, {key_at.line, 1});
  const std::string_view line = line_at(text, begin);
  const auto entry = entry_of(line);
  if (line.find(':') == std::string_view::npos) {
    std::string_view found = line.substr(std::min(offset_of(text, key_at) - begin, line.size()));
    found = found.substr(0, found.find_last_not_of(kYamlBlanks) + 1);
    error.at = key_at;
    error.message =
        fmt::format("expected `key: value`, found `{}`", found.size() > kShortText ? std::string_view("…") : found);
    return;
  }
  if (!entry || entry->value == std::string_view::npos || !lacks_space(*entry)) {
    return;
  }
  error.at = place_of(text, begin + entry->value);
  error.message = with_space(*entry, line);
}

// The line before may be the wrong one: it gives a key a value where the next line nests something, or it lacks the
// space that makes it an entry.
void blame_line_before(std::string_view text, std::size_t problem, const std::function<Position(Position)>& shown,
                       YamlError& error) {
  const std::string_view here = line_at(text, problem);
  const std::string_view before = text.substr(0, static_cast<std::size_t>(here.data() - text.data()));
  const Position end = after_last_token(before);
  const std::size_t begin = offset_of(text, {end.line, 1});
  const std::string_view line = line_at(text, begin);
  const auto entry = is_blank(line) ? std::nullopt : entry_of(line);
  if (!entry || entry->value == std::string_view::npos) {
    return;
  }
  const std::size_t indent = std::min(here.find_first_not_of(' '), here.size());
  const char quote = line[entry->value];
  if ((quote == '"' || quote == '\'') && line.find(quote, entry->value + 1) == std::string_view::npos) {
    error.cause = place_of(text, begin + entry->value);
    error.cause_message = "the quote that opens here is not closed in this line";
  } else if (lacks_space(*entry)) {
    error.cause = place_of(text, begin + entry->value);
    error.cause_message = with_space(*entry, line);
  } else if (indent > entry->indent) {
    error.cause = place_of(text, begin + entry->value);
    error.cause_message = fmt::format("\"{}\" has a value here, so line {} cannot be nested below it",
                                      shown_value(entry->key), shown(place_of(text, problem)).line);
  }
}

// Where it begins outside quotes and comments, as far as the line shows.
std::size_t find_bare(std::string_view line, std::string_view wanted) {
  const auto found = line.find(wanted);
  return found == std::string_view::npos || line.substr(0, found).find_first_of("#\"'") != std::string_view::npos
             ? std::string_view::npos
             : found;
}

// "{{ .Values.x }}", "{{- if …}}"
std::size_t find_template(std::string_view line) {
  const auto open = find_bare(line, "{{");
  const bool is_template = open != std::string_view::npos && line.find("}}", open) != std::string_view::npos &&
                           line.find_first_of(" -.$", open) == open + 2;
  return is_template ? open : std::string_view::npos;
}

// Something that is no YAML, in one of the lines that the error is about.
void blame_what_is_no_yaml(std::string_view text, const YamlProblem& found, YamlError& error) {
  for (const int number : {error.cause.line, error.at.line, found.context_at.line}) {
    if (number < 1) continue;
    const std::size_t begin = offset_of(text, {number, 1});
    const std::string_view line = line_at(text, begin);
    const bool near = number == error.cause.line || number == error.at.line;
    if (const auto blank = find_bare(line, "\u00a0"); near && blank != std::string_view::npos) {
      error = {"SyntaxError",
               place_of(text, begin + blank),
               "the blank here is a no-break space (U+00A0), which YAML reads as a letter; type a space",
               {},
               ""};
      return;
    }
    if (const auto open = find_template(line); open != std::string_view::npos) {
      error = {"SyntaxError",
               place_of(text, begin + open),
               "{{ … }} is part of a template, and no YAML; render it first: `helm template RELEASE CHART | "
               "gpu-sharing-operator lint -`",
               {},
               ""};
      return;
    }
  }
}

}  // namespace

std::string explain_refused_character(std::string_view text, std::string problem) {
  const auto zero = [&](std::size_t at) { return at < text.size() && text[at] == '\0'; };
  const bool little = !zero(0) && zero(1) && !zero(2) && zero(3);
  const bool big = zero(0) && !zero(1) && zero(2) && !zero(3);
  if (!little && !big) return problem;
  return fmt::format(
      "every second byte is zero: the text is UTF-16 without a byte order mark; save it as UTF-8, for example by "
      "`iconv --from-code UTF-16{} --to-code UTF-8`",
      little ? "LE" : "BE");
}

std::optional<YamlError> explain_json_comment(std::string_view text, std::size_t offset) {
  constexpr std::string_view kSeparator = "---";
  const std::size_t separator = text.substr(0, offset).rfind("\n---");
  const std::size_t begin = separator != std::string_view::npos ? separator + 1 + kSeparator.size()
                            : text.starts_with(kSeparator)      ? kSeparator.size()
                                                                : 0;
  const auto comment = find_json_comment(text.substr(begin));
  if (!comment || begin + *comment > offset) return std::nullopt;
  return YamlError{"SyntaxError",
                   place_of(text, begin + *comment),
                   fmt::format("JSON has no comments; remove the comment that begins here with `{}`",
                               text.substr(begin + *comment, 2)),
                   {},
                   ""};
}

YamlError explain_syntax_error(std::string_view text, const YamlProblem& found,
                               const std::function<Position(Position)>& shown) {
  const std::size_t offset = offset_of(text, found.at);
  if (auto comment = explain_json_comment(text, offset)) return *std::move(comment);
  const std::string_view rest = text.substr(offset);
  YamlError error{"SyntaxError", found.at, std::string(found.problem), {}, ""};
  if (!found.context.empty()) {
    error.message =
        fmt::format("{} {} (which begins in line {})", found.problem, found.context, shown(found.context_at).line);
  }
  const bool incomplete = found.problem.starts_with("did not find expected ',' or");
  const bool over = rest.empty() || (found.at.column == 1 && (rest.starts_with("---") || rest.starts_with("...")));
  if (found.context.find("quoted scalar") != std::string_view::npos) {
    error.at = found.context_at;  // Where the quote opens: it closes too late, or never.
  } else if (incomplete || found.problem == "did not find expected node content") {
    const Position otherwise = incomplete || over ? after_last_token(text.substr(0, offset)) : found.at;
    error.at = missing_bracket(text, offset, found.flow.value_or(found.context_at)).value_or(otherwise);
    if (!found.context.empty() && found.context_at.line > error.at.line) {
      error.message = fmt::format("{} {}", found.problem, found.context);  // It would begin behind the end of the text.
    }
    if (found.flow && rest.starts_with("- ") && error.at == found.at) {
      error.cause = *found.flow;
      error.cause_message = "the bracket that opens here is not closed before a list with '-'";
    }
  } else if (found.problem == "mapping values are not allowed in this context" ||
             found.problem == "did not find expected key") {
    blame_line_before(text, offset, shown, error);
  } else if (found.problem == "could not find expected ':'" && !found.context.empty()) {
    blame_missing_colon(text, found.context_at, error);
  } else if (found.problem == "found character that cannot start any token" && rest.starts_with('\t')) {
    error.message = "a tab cannot indent a line; use spaces";
  }
  blame_what_is_no_yaml(text, found, error);
  return error;
}

}  // namespace gso
