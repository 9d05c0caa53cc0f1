// Tables, and documents as JSON or YAML.
#include "controller/commands/shared/print.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reconcilers/model/json_access.h"
#include "reconcilers/model/message_text.h"

namespace gso {
namespace {

constexpr std::size_t kColumnGap = 3;  // Blanks between two columns.

// At most `room` bytes (3 or more), cut between two characters.
std::string shortened(const std::string& text, std::size_t room) {
  if (text.size() <= room) return text;
  return std::string(first_bytes(text, room - 3)) + "...";
}

// --- JSON, and YAML as kubectl lays it out: block style for what holds something, flow style for what is empty, JSON's
// quotes for what needs any.

using OrderedJson = nlohmann::ordered_json;

// Letters, digits and a few signs, beginning with a letter, and no word that YAML 1.1 reads as a boolean or null.
bool is_plain(std::string_view text) {
  static constexpr std::array<std::string_view, 10> kWords{"true", "false", "yes", "no", "on",
                                                           "off",  "null",  "y",   "n",  "~"};
  const auto letter = [](unsigned char c) { return std::isalpha(c) != 0; };
  const auto fine = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '/';
  };
  if (text.empty() || !letter(static_cast<unsigned char>(text.front()))) return false;
  if (!std::all_of(text.begin(), text.end(), fine)) return false;
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(kWords.begin(), kWords.end(), lower) == kWords.end();
}

std::string scalar(const OrderedJson& value) {
  if (value.is_string() && is_plain(value.get_ref<const std::string&>())) return value.get<std::string>();
  return printable_json(dump(value));  // JSON is YAML.
}

bool is_block(const OrderedJson& value) {
  return value.is_structured() && !value.empty();
}

// `first`: the position is already behind "- ".
void print(const OrderedJson& value, std::size_t indent, bool first, std::ostream& out) {
  const std::string blanks(indent, ' ');
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) {
      if (!first) out << blanks;
      first = false;
      out << scalar(OrderedJson(key)) << ":";
      if (!is_block(member)) {
        out << " " << scalar(member) << "\n";
        continue;
      }
      out << "\n";
      print(member, indent + (member.is_object() ? 2 : 0), false, out);
    }
    return;
  }
  for (const OrderedJson& item : value) {
    if (!first) out << blanks;
    first = false;
    out << "- ";
    if (is_block(item)) {
      print(item, indent + 2, true, out);
    } else {
      out << scalar(item) << "\n";
    }
  }
}

}  // namespace

void drop_columns(std::vector<TextRow>& rows, TerminalWidth terminal, const std::vector<std::string_view>& least,
                  std::size_t room) {
  for (const std::string_view heading : least) {
    std::size_t before = 0;
    for (std::size_t i = 0; i + 1 < rows.front().size(); ++i) {
      std::size_t widest = 0;
      for (const TextRow& row : rows) widest = std::max(widest, row[i].size());
      before += widest + kColumnGap;
    }
    if (terminal == 0 || before + room <= terminal) return;
    const auto found = std::ranges::find(rows.front(), heading);
    if (found == rows.front().end()) continue;
    const std::ptrdiff_t column = found - rows.front().begin();
    for (TextRow& row : rows) row.erase(row.begin() + column);
  }
}

std::vector<std::string> table_lines(std::vector<TextRow> rows, TerminalWidth terminal) {
  constexpr std::size_t kLeastRoom = 20;  // Of the last column.
  std::vector<std::size_t> widths;
  for (TextRow& row : rows) {
    for (std::string& text : row) text = shown_message(text);
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::size_t before = 0;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) before += widths[i] + kColumnGap;
  const std::size_t room = terminal == 0 ? std::string::npos : std::max(terminal, before + kLeastRoom) - before;
  std::vector<std::string> out;
  for (const TextRow& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool last = i + 1 == widths.size();
      line += last ? shortened(row[i], room) : row[i] + std::string(widths[i] + kColumnGap - row[i].size(), ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out.push_back(std::move(line));
  }
  return out;
}

void print_table(std::vector<TextRow> rows, std::ostream& out, TerminalWidth terminal) {
  for (const std::string& line : table_lines(std::move(rows), terminal)) out << line << "\n";
}

void print_document(const OrderedJson& document, OutputForm form, std::ostream& out) {
  if (form == OutputForm::json) {
    out << printable_json(document.dump(2, ' ', false, OrderedJson::error_handler_t::replace)) << "\n";
  } else if (is_block(document)) {
    print(document, 0, false, out);
  } else {
    out << scalar(document) << "\n";
  }
}

}  // namespace gso
