// Tables for a terminal: columns as wide as their widest text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

namespace gso {

using TextRow = std::vector<std::string>;

// The first row is the heading. No blanks at the ends of lines.
inline void print_table(const std::vector<TextRow>& rows, std::ostream& out) {
  constexpr std::size_t kGap = 3;
  std::vector<std::size_t> widths;
  for (const TextRow& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const TextRow& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += row[i] + std::string(widths[i] + kGap - row[i].size(), ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << "\n";
  }
}

}  // namespace gso
