#include "controller/commands/shared/screen.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace gso {

namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread, and nobody sets it.
  return value == nullptr ? std::string_view() : std::string_view(value);
}

bool says_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view value = variable(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string_view::npos || value.find("utf8") != std::string_view::npos;
  }
  return false;
}

std::string_view code_of(Paint paint) {
  switch (paint) {
    case Paint::plain:
      break;
    case Paint::green:
      return "\x1b[32m";
    case Paint::yellow:
      return "\x1b[33m";
    case Paint::red:
      return "\x1b[31m";
    case Paint::dim:
      return "\x1b[2m";
    case Paint::bold:
      return "\x1b[1m";
  }
  return "";
}

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

std::string painted(std::string_view text, Paint paint, const Screen& screen) {
  if (!screen.colour || paint == Paint::plain || text.empty()) return std::string(text);
  return fmt::format("{}{}{}", code_of(paint), text, kPlain);
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

std::string page_of(std::string_view text, const Screen& screen) {
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  const bool cut = screen.rows > 1 && lines.size() >= screen.rows;
  const std::size_t shown = cut ? screen.rows - 2 : lines.size();
  // To the upper left; each line erases what was behind it, the last one all below.
  std::string out = "\x1b[H";
  for (std::size_t i = 0; i < shown; ++i) out += cut_to(lines[i], screen.columns) + "\x1b[K\n";
  if (cut) out += fmt::format("({} more lines)\x1b[K\n", lines.size() - shown);
  return out + "\x1b[J";
}

}  // namespace gso
