// Which node of a live view is selected, and which of its lines are on the screen.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "controller/commands/live/keys.h"
#include "controller/commands/live/lines.h"

namespace gso {

// Lines without nodes are only scrolled.
class Selection {
 public:
  // The lines of now, and how many of them the screen has room for. The selection stays on its node by name, also if
  // that has another place or is under another rollout. If the node is gone, the one that came after it is selected,
  // else the one before it. At first it is the first one.
  void follow(const std::vector<LiveLine>& lines, std::size_t rows);
  // Page keys move by as many nodes as the screen has rows, but one. A key that cannot move the selection any further
  // scrolls: text can come before the first node and after the last one.
  void move(Key key);

  // The selected node; null: no line has one.
  [[nodiscard]] const std::string* node() const { return nodes_.empty() ? nullptr : &nodes_[at_].node; }
  // The selected line.
  [[nodiscard]] std::optional<std::size_t> line() const;
  // The first line on the screen.
  [[nodiscard]] std::size_t top() const { return top_; }

 private:
  struct NodeLine {
    std::string node;
    std::string under;
    std::size_t line = 0;
  };
  [[nodiscard]] std::optional<std::size_t> find(const NodeLine& wanted) const;
  [[nodiscard]] std::size_t place_after(const std::vector<NodeLine>& before) const;
  void step(std::ptrdiff_t by);
  void scroll(std::ptrdiff_t by);
  [[nodiscard]] bool shows_selection() const;
  void reveal();

  std::vector<NodeLine> nodes_;  // In the order of their lines.
  std::size_t lines_ = 0;
  std::size_t rows_ = 0;
  std::size_t at_ = 0;  // Of nodes_.
  std::size_t top_ = 0;
};

}  // namespace gso
