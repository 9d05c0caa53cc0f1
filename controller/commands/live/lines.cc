#include "controller/commands/live/lines.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace gso {

void append_text(std::vector<LiveLine>& lines, std::string_view text, std::string node, std::string under) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back({std::string(text.substr(at, end - at)), std::exchange(node, {}), std::exchange(under, {})});
    at = end + 1;
  }
}

std::string text_of(const std::vector<LiveLine>& lines) {
  std::string out;
  for (const LiveLine& line : lines) out += line.text + "\n";
  return out;
}

}  // namespace gso
