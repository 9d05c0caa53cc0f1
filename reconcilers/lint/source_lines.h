// The lines of a text for people: split once, however many diagnostics show one of them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gso {

// Lines end in "\n", "\r" or "\r\n", as editors show them. A text in UTF-16 is shown in UTF-8.
class SourceLines {
 public:
  // The text must outlive the object.
  explicit SourceLines(std::string_view text);
  SourceLines(const SourceLines&) = delete;
  SourceLines& operator=(const SourceLines&) = delete;

  // The line of that number, from 1, without its end and without a byte order mark; empty if there is none.
  [[nodiscard]] std::string_view line(int number) const;

 private:
  std::string converted_;
  std::string_view text_;
  // Where the lines begin, as far as one was asked for.
  mutable std::vector<std::size_t> starts_{0};
};

}  // namespace gso
