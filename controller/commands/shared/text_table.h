// Tables for a terminal: columns as wide as their widest text, the last one cut to what the terminal has left.
#pragma once

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reconcilers/model/foreign_text.h"
#include "reconcilers/model/message_text.h"

namespace gso {

using TextRow = std::vector<std::string>;

// Columns of the terminal that a table has to fit in; 0: the output is no terminal, and nothing is cut.
using TerminalWidth = std::size_t;

// At most `room` bytes (3 or more), cut between two characters.
inline std::string shortened(const std::string& text, std::size_t room) {
  if (text.size() <= room) return text;
  return std::string(first_bytes(text, room - 3)) + "...";
}

// Room for a sentence in the last column.
inline constexpr std::size_t kSentence = 40;

// Removes columns, in the order of `least`, until the last one has `room` on a terminal of that width.
inline void drop_columns(std::vector<TextRow>& rows, TerminalWidth terminal, const std::vector<std::string_view>& least,
                         std::size_t room = kSentence) {
  constexpr std::size_t kGap = 3;
  for (const std::string_view heading : least) {
    std::size_t before = 0;
    for (std::size_t i = 0; i + 1 < rows.front().size(); ++i) {
      std::size_t widest = 0;
      for (const TextRow& row : rows) widest = std::max(widest, row[i].size());
      before += widest + kGap;
    }
    if (terminal == 0 || before + room <= terminal) return;
    const auto found = std::ranges::find(rows.front(), heading);
    if (found == rows.front().end()) continue;
    const std::ptrdiff_t column = found - rows.front().begin();
    for (TextRow& row : rows) row.erase(row.begin() + column);
  }
}

// A line for each row; the first row is the heading. No blanks at the ends of lines.
[[nodiscard]] inline std::vector<std::string> table_lines(std::vector<TextRow> rows, TerminalWidth terminal = 0) {
  constexpr std::size_t kGap = 3;
  constexpr std::size_t kLeastRoom = 20;  // Of the last column.
  std::vector<std::size_t> widths;
  for (TextRow& row : rows) {
    for (std::string& text : row) text = shown_message(text);
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::size_t before = 0;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) before += widths[i] + kGap;
  const std::size_t room = terminal == 0 ? std::string::npos : std::max(terminal, before + kLeastRoom) - before;
  std::vector<std::string> out;
  for (const TextRow& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool last = i + 1 == widths.size();
      line += last ? shortened(row[i], room) : row[i] + std::string(widths[i] + kGap - row[i].size(), ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out.push_back(std::move(line));
  }
  return out;
}

inline void print_table(std::vector<TextRow> rows, std::ostream& out, TerminalWidth terminal = 0) {
  for (const std::string& line : table_lines(std::move(rows), terminal)) out << line << "\n";
}

}  // namespace gso
