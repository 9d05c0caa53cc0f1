// How commands print: lines for people, tables, and documents for programs.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "k8sclient/value/error.h"
#include "reconcilers/model/message_text.h"

namespace gso {

// A line for people. Whatever text it shows, it stays one line: only this ends it. `text` has no newlines of its own.
template <class... Values>
void print_line(std::ostream& out, fmt::format_string<Values...> text, Values&&... values) {
  out << one_line(fmt::format(text, std::forward<Values>(values)...)) << '\n';
}

// "COMMAND: WHY" in one line, for wrong usage and for what cannot be read; `command`: "gpu-sharing-operator audit".
// Returns the exit status of that, 2.
int refuse(std::ostream& err, std::string_view command, std::string_view why);
// The same of view_of(): a line for each wrong object.
int refuse_manifests(std::ostream& err, std::string_view command, const k8s::Error& error);

// A row of a table for a terminal: columns as wide as their widest text, the last one cut to what the terminal has
// left. The first row is the heading.
using TextRow = std::vector<std::string>;

// Of ASCII letters.
[[nodiscard]] std::string in_lower_case(std::string_view text);

// "-" for an empty cell.
[[nodiscard]] std::string or_dash(std::string_view text);

// Columns of the terminal that a table has to fit in; 0: the output is no terminal, and nothing is cut.
using TerminalWidth = std::size_t;

// Room for a sentence in the last column.
inline constexpr std::size_t kSentence = 40;

// Removes the columns with these headings.
void remove_columns(std::vector<TextRow>& rows, const std::vector<std::string_view>& headings);
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
// A list with the JSON that `convert` makes of each of the values.
template <class Json = nlohmann::ordered_json, class Values, class Convert>
[[nodiscard]] Json json_list(const Values& values, const Convert& convert) {
  Json out = Json::array();
  for (const auto& value : values) out.push_back(convert(value));
  return out;
}

// --- What a terminal can show: its size, colour and characters, and whole pages of text in its alternate screen.

// 0 columns: the output is no terminal, and lines are as long as they are.
struct Screen {
  std::size_t columns = 0;
  std::size_t rows = 0;
  bool colour = false;
  bool utf8 = false;
  [[nodiscard]] bool is_terminal() const { return columns > 0; }
};
// Of stdout now. Colour: not if NO_COLOR is set or TERM is `dumb`. UTF-8: as LC_ALL, LC_CTYPE or LANG says.
[[nodiscard]] Screen screen_of_stdout();

// Of stderr now; 0: it is no terminal.
[[nodiscard]] std::size_t columns_of_stderr();

enum class Paint { green, yellow, red, dim, bold };
// The text in that colour, where the screen has any.
[[nodiscard]] std::string painted(std::string_view text, Paint paint, const Screen& screen);

// The text with its foreground and background exchanged and without colours of its own, where the screen has any.
[[nodiscard]] std::string reversed(std::string_view text, const Screen& screen);

// Columns that the text takes, without its colours.
[[nodiscard]] std::size_t columns_of(std::string_view text);
// The text in at most `columns` columns, with its colours; 0: whole.
[[nodiscard]] std::string cut_to(std::string_view text, std::size_t columns);

// The text in lines of at most so many columns (0: as they are), broken between words where that is possible. What is
// continued is indented, in a row of a table to its last cell. Tabs are blanks.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t columns);
// The same for text that stays on the terminal. A line that is a shell command, also behind "next: ", stays whole, and
// so does a command within a sentence, in backticks or behind a colon: a command that is broken cannot be pasted.
[[nodiscard]] std::string wrapped_prose(std::string_view text, std::size_t columns);

inline constexpr std::string_view kEnterAlternateScreen = "\x1b[?1049h\x1b[?25l";
inline constexpr std::string_view kLeaveAlternateScreen = "\x1b[?25h\x1b[?1049l";

// A stream for messages: what comes from a cluster or a file reaches the terminal line by line, with control characters
// escaped, whoever has written the message, and broken between words.
class PrintableStream final : private std::streambuf, public std::ostream {
 public:
  // `behind` must outlive this stream. `columns`: of the terminal behind it; 0: lines stay as long as they are.
  explicit PrintableStream(std::ostream& behind, std::size_t columns = 0)
      : std::ostream(this), behind_(behind), columns_(columns) {}
  ~PrintableStream() override { write_rest(); }
  PrintableStream(const PrintableStream&) = delete;
  PrintableStream& operator=(const PrintableStream&) = delete;

 private:
  using Traits = std::char_traits<char>;
  // Also what has no line end yet.
  void write_rest();
  Traits::int_type overflow(Traits::int_type c) override;
  int sync() override;

  std::ostream& behind_;
  std::size_t columns_;
  std::string line_;
};

}  // namespace gso
