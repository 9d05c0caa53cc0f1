// Lines for people. Whatever text a line shows, it stays one line: only print_line() ends it.
#pragma once

#include <fmt/format.h>

#include <ostream>
#include <utility>

#include "reconcilers/model/foreign_text.h"

namespace gso {

// The text, and the end of the line. `text` has no newlines of its own.
template <class... Values>
void print_line(std::ostream& out, fmt::format_string<Values...> text, Values&&... values) {
  out << one_line(fmt::format(text, std::forward<Values>(values)...)) << '\n';
}

}  // namespace gso
