// The lines of a live view: text, and the node that a line is about.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gso {

struct LiveLine {
  std::string text;
  std::string node{};   // The node that this line is about, which can be selected; empty: none.
  std::string under{};  // The rollout that it belongs to: a node can have a line under each of two.
  friend bool operator==(const LiveLine&, const LiveLine&) = default;
};

// Appends the text, one line for each of its own; the first one is about the node. A newline at the end ends the last
// line and begins no other one.
void append_text(std::vector<LiveLine>& lines, std::string_view text, std::string node = {}, std::string under = {});
// The lines as text, each with a newline.
[[nodiscard]] std::string text_of(const std::vector<LiveLine>& lines);

}  // namespace gso
