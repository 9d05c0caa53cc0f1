// How commands print: lines for people, tables, and documents for programs.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reconcilers/model/message_text.h"

namespace gso {

// A line for people. Whatever text it shows, it stays one line: only this ends it. `text` has no newlines of its own.
template <class... Values>
void print_line(std::ostream& out, fmt::format_string<Values...> text, Values&&... values) {
  out << one_line(fmt::format(text, std::forward<Values>(values)...)) << '\n';
}

// A row of a table for a terminal: columns as wide as their widest text, the last one cut to what the terminal has
// left. The first row is the heading.
using TextRow = std::vector<std::string>;

// Columns of the terminal that a table has to fit in; 0: the output is no terminal, and nothing is cut.
using TerminalWidth = std::size_t;

// Room for a sentence in the last column.
inline constexpr std::size_t kSentence = 40;

// Removes columns, in the order of `least`, until the last one has `room` on a terminal of that width.
void drop_columns(std::vector<TextRow>& rows, TerminalWidth terminal, const std::vector<std::string_view>& least,
                  std::size_t room = kSentence);
// A line for each row. No blanks at the ends of lines.
[[nodiscard]] std::vector<std::string> table_lines(std::vector<TextRow> rows, TerminalWidth terminal = 0);
void print_table(std::vector<TextRow> rows, std::ostream& out, TerminalWidth terminal = 0);

// The forms in which commands print.
enum class OutputForm { text, wide, json, yaml };

// One JSON or YAML document. `form` is one of these two.
void print_document(const nlohmann::ordered_json& document, OutputForm form, std::ostream& out);

}  // namespace gso
