#include "controller/commands/live/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reconcilers/model/foreign_text.h"
#include "reconcilers/model/message_text.h"

namespace gso {

namespace {

constexpr std::string_view kSelected = "> ";
constexpr std::string_view kNotSelected = "  ";
constexpr std::string_view kKeys =
    "In the list of nodes\n"
    "  Up, Down, k, j         select a node\n"
    "  Page Up, Page Down     move by a screen\n"
    "  Home, End, g, G        move to the first node, to the last one\n"
    "  Enter, e               explain the selected node, as `explain NODE` does\n"
    "  q                      end, with exit status 0\n"
    "\n"
    "In an explanation\n"
    "  Up, Down, k, j, Page Up, Page Down, Home, End, g, G\n"
    "                         scroll\n"
    "  r                      read the cluster again\n"
    "  q, Esc                 go back to the list of nodes\n"
    "\n"
    "Everywhere\n"
    "  ?                      show these keys; ?, q and Esc leave them\n"
    "  Ctrl-C                 end\n"
    "  Ctrl-Z                 suspend; `fg` of the shell continues\n";

// The number of rows of a terminal that does not say how many it has.
constexpr std::size_t kUsualRows = 24;

}  // namespace

LiveView::Ask LiveView::press(Key key) {
  if (keys_) {
    if (key == Key::help || key == Key::quit || key == Key::back) {
      keys_.reset();
    } else {
      keys_->scroll.move(key);
    }
    return Ask::nothing;
  }
  if (key == Key::help) {
    keys_ = Pane{.node = {}, .text = std::string(kKeys), .read_at = {}};
    lay_out(*keys_);
    return Ask::nothing;
  }
  return explanation_ ? press_in_explanation(key) : press_in_tree(key);
}

LiveView::Ask LiveView::press_in_tree(Key key) {
  if (key == Key::quit) return Ask::quit;
  if (key != Key::open) {
    selection_.move(key);
    return Ask::nothing;
  }
  if (selection_.node() == nullptr) return Ask::nothing;
  explanation_ = Pane{.node = *selection_.node(), .text = {}, .read_at = {}};
  lay_out(*explanation_);
  return Ask::explain;
}

LiveView::Ask LiveView::press_in_explanation(Key key) {
  switch (key) {
    case Key::quit:
    case Key::back:
      explanation_.reset();
      return Ask::forget;
    case Key::read_again:
      explanation_->read_at.clear();
      return Ask::explain;
    default:
      explanation_->scroll.move(key);
      return Ask::nothing;
  }
}

void LiveView::resize(const Screen& screen) {
  if (!screen.is_terminal()) return;
  screen_ = screen;
  selection_.follow(tree_, rows());
  if (explanation_) lay_out(*explanation_);
  if (keys_) lay_out(*keys_);
}

Screen LiveView::room() const {
  Screen out = screen_;
  // At least one column: 0 means that the output is no terminal.
  out.columns = std::max(out.columns, kSelected.size() + 1) - kSelected.size();
  return out;
}

void LiveView::show(std::vector<LiveLine> lines) {
  tree_ = std::move(lines);
  selection_.follow(tree_, rows());
}

void LiveView::show_explanation(const std::string& text, const std::string& read_at) {
  if (!explanation_) return;
  explanation_->text = text;
  explanation_->read_at = read_at;
  lay_out(*explanation_);
}

// Without the row that names the keys.
std::size_t LiveView::rows() const {
  const std::size_t all = screen_.rows == 0 ? kUsualRows : screen_.rows;
  return all > 1 ? all - 1 : 1;
}

void LiveView::lay_out(Pane& pane) const {
  const std::string reading = one_line(fmt::format("Reading the cluster to explain node {} ...", pane.node)) + "\n";
  pane.lines.clear();
  append_text(pane.lines, wrapped(pane.text.empty() ? reading : pane.text, screen_.columns));
  pane.scroll.follow(pane.lines, rows());
}

std::string LiveView::bar() const {
  if (keys_) return "?, q, Esc: back";
  if (explanation_) {
    const std::string& at = explanation_->read_at;
    return fmt::format("?: keys  q: back  r: read again  Up/Down: scroll  {}",
                       at.empty() ? "reading" : "read at " + at);
  }
  const std::string* const node = selection_.node();
  return node == nullptr ? "?: keys  q: quit"
                         : fmt::format("?: keys  q: quit  Up/Down: select  Enter: explain {}", one_line(*node));
}

std::string LiveView::row(const LiveLine& line, bool selectable, bool selected) const {
  std::string text = line.text;
  std::ranges::replace(text, '\t', ' ');
  if (!selectable) return cut_to(text, screen_.columns);
  const std::string marked = std::string(selected ? kSelected : kNotSelected).append(text);
  return selected ? reversed(cut_to(marked, screen_.columns), screen_) : cut_to(marked, screen_.columns);
}

std::string LiveView::page() const {
  const bool in_tree = !keys_ && !explanation_;
  const Pane* const pane = keys_ ? &*keys_ : explanation_ ? &*explanation_ : nullptr;
  const std::vector<LiveLine>& lines = pane == nullptr ? tree_ : pane->lines;
  const Selection& shown = pane == nullptr ? selection_ : pane->scroll;
  // To the upper left; each row erases what was behind it.
  std::string out = "\x1b[H";
  for (std::size_t i = 0; i < rows(); ++i) {
    const std::size_t at = shown.top() + i;
    if (at < lines.size()) out += row(lines[at], in_tree, in_tree && shown.line() == at);
    out += "\x1b[K\n";
  }
  const std::size_t end = std::min(lines.size(), shown.top() + rows());
  const std::string place =
      lines.size() > rows() ? fmt::format("  lines {}-{} of {}", shown.top() + 1, end, lines.size()) : "";
  return out + reversed(cut_to(bar() + place, screen_.columns), screen_) + "\x1b[K\x1b[J";
}

}  // namespace gso
