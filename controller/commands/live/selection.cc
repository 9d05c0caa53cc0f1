#include "controller/commands/live/selection.h"

#include <algorithm>
#include <utility>

namespace gso {

namespace {

// `at` moved by that many places, of the places 0 to `last`.
std::size_t moved(std::size_t at, std::ptrdiff_t by, std::size_t last) {
  const std::ptrdiff_t to = static_cast<std::ptrdiff_t>(at) + by;
  return static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(to, 0, static_cast<std::ptrdiff_t>(last)));
}

}  // namespace

void Selection::follow(const std::vector<LiveLine>& lines, std::size_t rows) {
  const bool shown = shows_selection();
  std::vector<NodeLine> now;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].node.empty()) now.push_back({lines[i].node, lines[i].under, i});
  }
  const std::vector<NodeLine> before = std::exchange(nodes_, std::move(now));
  lines_ = lines.size();
  rows_ = rows;
  at_ = nodes_.empty() ? 0 : place_after(before);
  scroll(0);
  if (shown && !nodes_.empty() && !shows_selection()) reveal();
}

std::optional<std::size_t> Selection::find(const NodeLine& wanted) const {
  std::optional<std::size_t> out;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].node != wanted.node) continue;
    if (nodes_[i].under == wanted.under) return i;
    if (!out) out = i;
  }
  return out;
}

// The place of the node that was selected among `before`, or of its nearest neighbour that is still there.
std::size_t Selection::place_after(const std::vector<NodeLine>& before) const {
  for (std::size_t i = at_; i < before.size(); ++i) {
    if (const std::optional<std::size_t> place = find(before[i])) return *place;
  }
  for (std::size_t i = std::min(at_, before.size()); i > 0; --i) {
    if (const std::optional<std::size_t> place = find(before[i - 1])) return *place;
  }
  return 0;
}

void Selection::move(Key key) {
  const auto page = static_cast<std::ptrdiff_t>(rows_ > 2 ? rows_ - 1 : 1);
  switch (key) {
    case Key::up:
      return step(-1);
    case Key::down:
      return step(1);
    case Key::page_up:
      return step(-page);
    case Key::page_down:
      return step(page);
    case Key::first:
      at_ = 0;
      top_ = 0;
      return;
    case Key::last:
      at_ = nodes_.empty() ? 0 : nodes_.size() - 1;
      scroll(static_cast<std::ptrdiff_t>(lines_));
      return;
    case Key::open:
    case Key::read_again:
    case Key::back:
    case Key::quit:
    case Key::help:
      return;
  }
}

std::optional<std::size_t> Selection::line() const {
  if (nodes_.empty()) return std::nullopt;
  return nodes_[at_].line;
}

void Selection::step(std::ptrdiff_t by) {
  const std::size_t to = nodes_.empty() ? at_ : moved(at_, by, nodes_.size() - 1);
  if (to == at_) return scroll(by);
  at_ = to;
  reveal();
}

void Selection::scroll(std::ptrdiff_t by) {
  top_ = moved(top_, by, lines_ > rows_ ? lines_ - rows_ : 0);
}

bool Selection::shows_selection() const {
  const std::optional<std::size_t> selected = line();
  return selected && *selected >= top_ && *selected < top_ + rows_;
}

void Selection::reveal() {
  const std::size_t selected = nodes_[at_].line;
  if (selected < top_) top_ = selected;
  if (selected >= top_ + rows_) top_ = selected + 1 - rows_;
  // The lines above the first node are its heading.
  if (at_ == 0 && selected < rows_) top_ = 0;
}

}  // namespace gso
