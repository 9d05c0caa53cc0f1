// Narrator: prints the story as it goes. Steps, checks with a tick or a cross, live progress, and the table at the end.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/clock.h"

namespace gso::sim {

class Narrator {
 public:
  // Prints to `out` (nullptr: silent), with seconds since now() of `clock` in front of each line. Colours only when
  // `out` is a terminal.
  Narrator(k8s::Clock* clock, std::FILE* out);

  void step(std::string_view title);
  // A statement that held, or did not. `detail` says what was expected and what was seen.
  void check(bool held, std::string_view what, std::string_view detail = "");
  void note(std::string_view text);
  // One row of columns, padded to the widest cell of each column.
  void table(const std::vector<std::vector<std::string>>& rows);

  [[nodiscard]] int checks() const { return checks_; }
  [[nodiscard]] int failures() const { return static_cast<int>(failed_.size()); }
  [[nodiscard]] const std::vector<std::string>& failed() const { return failed_; }

 private:
  void line(std::string_view mark, std::string_view text);
  k8s::Clock* clock_;
  std::FILE* out_;
  bool colours_;
  k8s::MonoTime begun_;
  int checks_ = 0;
  std::vector<std::string> failed_;
};

}  // namespace gso::sim
