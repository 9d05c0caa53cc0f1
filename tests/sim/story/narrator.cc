#include "tests/sim/story/narrator.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace gso::sim {

Narrator::Narrator(k8s::Clock* clock, std::FILE* out)
    : clock_(clock), out_(out), colours_(out != nullptr && isatty(fileno(out)) == 1), begun_(clock->monotonic()) {}

void Narrator::line(std::string_view mark, std::string_view text) {
  if (out_ == nullptr) return;
  const double seconds = std::chrono::duration<double>(clock_->monotonic() - begun_).count();
  fmt::print(out_, "{:7.2f}  {} {}\n", seconds, mark, text);
  std::fflush(out_);
}

void Narrator::step(std::string_view title) {
  if (out_ == nullptr) return;
  fmt::print(out_, "\n{}{}{}\n", colours_ ? "\033[1m" : "", title, colours_ ? "\033[0m" : "");
  std::fflush(out_);
}

void Narrator::check(bool held, std::string_view what, std::string_view detail) {
  ++checks_;
  if (held) {
    line(colours_ ? "\033[32m✓\033[0m" : "✓", what);
    return;
  }
  const std::string text = detail.empty() ? std::string(what) : fmt::format("{}: {}", what, detail);
  failed_.push_back(text);
  line(colours_ ? "\033[31m✗\033[0m" : "✗", text);
}

void Narrator::note(std::string_view text) { line(colours_ ? "\033[2m·\033[0m" : "·", text); }

void Narrator::table(const std::vector<std::vector<std::string>>& rows) {
  if (out_ == nullptr) return;
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::string text;
    for (std::size_t i = 0; i < row.size(); ++i) text += fmt::format("{:<{}}  ", row[i], widths[i]);
    text.erase(text.find_last_not_of(' ') + 1);
    fmt::print(out_, "{}\n", text);
  }
  std::fflush(out_);
}

}  // namespace gso::sim
