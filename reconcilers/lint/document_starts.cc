// See document_starts.h.
#include "reconcilers/lint/document_starts.h"

#include <algorithm>

namespace gso {

std::size_t next_document(std::string_view text, int skip) {
  std::size_t at = 0;
  for (int line = 0; at < text.size(); ++line) {
    const std::string_view rest = text.substr(at);
    if (line >= skip && at > 0 && rest.starts_with("---") &&
        (rest.size() == 3 || rest[3] == '\n' || rest[3] == ' ' || rest[3] == '\r')) {
      return at;
    }
    const auto end = rest.find('\n');
    at = end == std::string_view::npos ? text.size() : at + end + 1;
  }
  return at;
}

std::optional<std::size_t> document_of_directive(std::string_view text, int directive) {
  bool between = true;  // Documents: at the beginning, or behind a "...".
  bool found = false;
  std::size_t at = 0;
  for (int line = 0; at < text.size(); ++line) {
    const std::string_view rest = text.substr(at);
    const std::string_view here = rest.substr(0, rest.find('\n'));
    if (found && here.starts_with("---")) return at;
    const bool silent = here.empty() || here == "\r" || here.starts_with('%') || here.starts_with('#');
    between = here.starts_with("...") || (between && silent);
    if (line == directive) found = between && here.starts_with('%');
    if (line >= directive && (!found || !silent)) return std::nullopt;
    at += std::min(rest.size(), here.size() + 1);
  }
  return std::nullopt;
}

}  // namespace gso
