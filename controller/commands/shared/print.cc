// Tables, and documents as JSON or YAML.
#include "controller/commands/shared/print.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "reconcilers/model/json_access.h"

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
  return std::ranges::find(kWords, in_lower_case(text)) == kWords.end();
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
  const bool list = value.is_array();
  for (const auto& [key, member] : value.items()) {
    const bool block = is_block(member);
    out << std::string(first ? 0 : indent, ' ') << (list ? "-" : scalar(OrderedJson(key)) + ":");
    out << (block && !list ? "\n" : " ");
    first = false;
    if (block)
      print(member, indent + (list || member.is_object() ? 2 : 0), list, out);
    else
      out << scalar(member) << "\n";
  }
}

}  // namespace

int refuse(std::ostream& err, std::string_view command, std::string_view why) {
  print_line(err, "{}: {}", command, why);
  return 2;
}

int refuse_manifests(std::ostream& err, std::string_view command, const k8s::Error& error) {
  err << command << ": " << error.message << "\n";
  return 2;
}

std::string in_lower_case(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::string or_dash(std::string_view text) {
  return text.empty() ? "-" : std::string(text);
}

void remove_columns(std::vector<TextRow>& rows, const std::vector<std::string_view>& headings) {
  for (const std::string_view heading : headings) {
    const auto column = std::ranges::find(rows.front(), heading) - rows.front().begin();
    if (column == std::ssize(rows.front())) continue;
    for (TextRow& row : rows) row.erase(row.begin() + column);
  }
}

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
    remove_columns(rows, {heading});
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
  if (form == OutputForm::json)
    out << printable_json(document.dump(2, ' ', false, OrderedJson::error_handler_t::replace)) << "\n";
  else if (is_block(document))
    print(document, 0, false, out);
  else
    out << scalar(document) << "\n";
}

// --- Cut, wrapped, painted, and made safe for a terminal.

namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread, and nobody sets it.
  return value == nullptr ? std::string_view() : std::string_view(value);
}

bool says_utf8() {
  std::string_view value;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) value = value.empty() ? variable(name) : value;
  return value.contains("UTF-8") || value.contains("utf8");
}

constexpr std::array<std::string_view, 5> kColours{"\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[2m",
                                                   "\x1b[1m"};  // By Paint.
constexpr std::string_view kPlain = "\x1b[0m";

// The length of the colour that begins at `at`; 0: none does.
std::size_t colour_at(std::string_view text, std::size_t at) {
  if (text[at] != '\x1b') return 0;
  const std::size_t end = text.find('m', at);
  return end == std::string_view::npos ? 0 : end + 1 - at;
}

bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U;
}

}  // namespace

Screen screen_of_stdout() {
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return {};
  const std::string_view term = variable("TERM");
  return {.columns = size.ws_col,
          .rows = size.ws_row,
          .colour = variable("NO_COLOR").empty() && !term.empty() && term != "dumb",
          .utf8 = says_utf8()};
}

std::size_t columns_of_stderr() {
  winsize size{};
  return isatty(STDERR_FILENO) != 0 && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

std::string painted(std::string_view text, Paint paint, const Screen& screen) {
  if (!screen.colour || text.empty()) return std::string(text);
  return fmt::format("{}{}{}", kColours[static_cast<std::size_t>(paint)], text, kPlain);
}

std::string reversed(std::string_view text, const Screen& screen) {
  if (!screen.colour) return std::string(text);
  std::string plain;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t colour = colour_at(text, i);
    if (colour == 0) plain += text[i];
    i += colour == 0 ? 1 : colour;
  }
  return fmt::format("\x1b[7m{}{}", plain, kPlain);
}

std::size_t columns_of(std::string_view text) {
  std::size_t out = 0;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t colour = colour_at(text, i);
    if (colour == 0 && !continues_character(text[i])) ++out;
    i += colour == 0 ? 1 : colour;
  }
  return out;
}

std::string cut_to(std::string_view text, std::size_t columns) {
  constexpr std::size_t kDots = 3;
  if (columns == 0 || columns_of(text) <= columns) return std::string(text);
  const std::size_t room = columns > kDots ? columns - kDots : 0;
  std::string out;
  bool coloured = false;
  std::size_t used = 0;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t colour = colour_at(text, i);
    if (colour > 0) {
      coloured = text.substr(i, colour) != kPlain;
      out += text.substr(i, colour);
      i += colour;
      continue;
    }
    if (!continues_character(text[i]) && ++used > room) break;
    out += text[i++];
  }
  out += std::string(std::min(kDots, columns), '.');
  if (coloured) out += kPlain;
  return out;
}

namespace {

// The bytes of as many columns, at least one.
std::size_t bytes_of(std::string_view text, std::size_t columns) {
  return std::max<std::size_t>(first_characters(text, columns).size(), 1);
}

// Where the text of a line continues: below its last cell where that leaves half of the columns, else a bit deeper than
// the line begins.
std::size_t indentation_of(std::string_view line, std::size_t columns) {
  constexpr std::size_t kDeeper = 2;
  constexpr std::string_view kGap = "   ";  // Of tables (print.cc).
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t gap = line.rfind(kGap);
  const std::size_t cell =
      gap == std::string_view::npos ? begin : std::min(line.find_first_not_of(' ', gap), line.size());
  const std::size_t of_cell = columns_of(line.substr(0, cell));
  if (cell > begin && of_cell <= columns / 2) return of_cell;
  return std::min(begin + kDeeper, columns / 2);  // A deep indentation would leave no room.
}

// Text that must stay on one line.
struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
};

constexpr std::array<std::string_view, 3> kPrograms{"gpu-sharing-operator ", "kubectl ", "helm "};

// Where a sentence names a command without quotes, behind a colon and up to its end: "Run: kubectl get pods".
std::size_t named_command(std::string_view line) {
  constexpr std::string_view kBehind = ": ";
  std::size_t out = std::string_view::npos;
  for (const std::string_view program : kPrograms) {
    const std::size_t at = line.find(std::string(kBehind).append(program));
    if (at != std::string_view::npos) out = std::min(out, at + kBehind.size());
  }
  return out;
}

// What the line quotes in backticks, and a command that it names.
std::vector<Span> unbroken(std::string_view line) {
  std::vector<Span> out;
  for (std::size_t at = line.find('`'); at != std::string_view::npos;) {
    const std::size_t end = line.find('`', at + 1);
    if (end == std::string_view::npos) break;
    out.push_back({at, end});
    at = line.find('`', end + 1);
  }
  const std::size_t command = named_command(line);
  const bool quoted = std::ranges::any_of(out, [&](const Span& s) { return s.begin < command && command < s.end; });
  if (command != std::string_view::npos && !quoted) out.push_back({command, line.size()});
  return out;
}

// Where the line can end: at the last blank between words up to `most` and behind `least`, else at a blank after what
// must stay whole there, however long it is; npos: nowhere.
std::size_t break_of(std::string_view line, std::size_t least, std::size_t most, const std::vector<Span>& whole) {
  const auto holding = [&](std::size_t at) {
    return std::ranges::find_if(whole, [at](const Span& span) { return span.begin <= at && at < span.end; });
  };
  for (std::size_t blank = line.rfind(' ', most); blank != std::string_view::npos && blank > least;
       blank = line.rfind(' ', blank - 1)) {
    if (holding(blank) == whole.end()) return blank;
  }
  const auto span = holding(most);
  return span == whole.end() ? std::string_view::npos : std::min(line.find(' ', span->end), line.size());
}

// One line of text in lines of so many columns. `commands`: those that it quotes are broken as well.
void wrap_line(std::string_view line, std::size_t columns, bool commands, std::string& out) {
  const std::size_t text_at = std::min(line.find_first_not_of(' '), line.size());
  const std::string indent(columns == 0 ? 0 : indentation_of(line, columns), ' ');
  const std::vector<Span> whole = commands ? std::vector<Span>() : unbroken(line);
  std::string now;
  std::size_t at = 0;
  while (columns > 0 && columns_of(now) + columns_of(line.substr(at)) > columns) {
    const std::size_t most = at + bytes_of(line.substr(at), columns - now.size());
    const std::size_t blank = break_of(line, now.empty() ? text_at : at, most, whole);
    const bool between_words = blank != std::string_view::npos;
    now.append(line.substr(at, (between_words ? blank : most) - at));
    now.erase(now.find_last_not_of(' ') + 1);
    out += now + "\n";
    at = between_words ? std::min(line.find_first_not_of(' ', blank), line.size()) : most;
    now = indent;
  }
  if (at < line.size() || now.empty()) out += now.append(line.substr(at)) + "\n";
}

bool is_command(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  if (line.starts_with("next: ")) return true;
  return std::ranges::any_of(kPrograms, [&](std::string_view program) { return line.starts_with(program); });
}

std::string wrap(std::string_view text, std::size_t columns, bool commands) {
  std::string blank(text);
  std::ranges::replace(blank, '\t', ' ');
  std::string out;
  const std::string_view all(blank);
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find('\n', at), all.size());
    const std::string_view line = all.substr(at, end - at);
    wrap_line(line, commands || !is_command(line) ? columns : 0, commands, out);
    at = end + 1;
  }
  return out;
}

}  // namespace

std::string wrapped(std::string_view text, std::size_t columns) {
  return wrap(text, columns, true);
}

std::string wrapped_prose(std::string_view text, std::size_t columns) {
  constexpr std::size_t kFewest = 8;  // Less has no room for a word: whatever says so is no terminal with a width.
  return wrap(text, columns < kFewest ? 0 : columns, false);
}

void PrintableStream::write_rest() {
  if (line_.empty()) return;
  const std::string text = printable(line_);
  const bool breaks = columns_ > 0 && text.ends_with('\n');
  behind_ << (breaks ? wrapped_prose(text, columns_) : text) << std::flush;
  line_.clear();
}

// A character of several bytes must not be cut: lines are written as a whole.
PrintableStream::Traits::int_type PrintableStream::overflow(Traits::int_type c) {
  if (Traits::eq_int_type(c, Traits::eof())) return Traits::not_eof(c);
  line_ += Traits::to_char_type(c);
  if (line_.back() == '\n') write_rest();
  return c;
}

int PrintableStream::sync() {
  write_rest();
  return behind_ ? 0 : -1;
}

}  // namespace gso
