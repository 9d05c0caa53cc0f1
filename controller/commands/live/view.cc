// Keys from bytes, the lines with their selection, and pages out of them.
#include "controller/commands/live/view.h"

#include <algorithm>
#include <iterator>

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

std::string page_of(const std::vector<LiveLine>& lines, const Screen& screen) {
  const bool cut = screen.rows > 1 && lines.size() >= screen.rows;
  const std::size_t shown = cut ? screen.rows - 2 : lines.size();
  // To the upper left; each line erases what was behind it, the last one all below.
  std::string out = "\x1b[H";
  for (std::size_t i = 0; i < shown; ++i) out += cut_to(lines[i].text, screen.columns) + "\x1b[K\n";
  if (cut) out += fmt::format("({} more lines)\x1b[K\n", lines.size() - shown);
  return out + "\x1b[J";
}

namespace {

constexpr char kEscape = '\x1b';
// A sequence that is longer is none: what follows an Escape is noise.
constexpr std::size_t kLongestSequence = 32;

// Cursor keys send ESC [ in the normal mode and ESC O in the application mode, which a program before us may have left
// on.
constexpr std::pair<std::string_view, Key> kMeanings[] = {
    {"k", Key::up},          {"\x1b[A", Key::up},    {"\x1bOA", Key::up},       {"j", Key::down},
    {"\x1b[B", Key::down},   {"\x1bOB", Key::down},  {"\x1b[5~", Key::page_up}, {"\x1b[6~", Key::page_down},
    {"g", Key::first},       {"\x1b[H", Key::first}, {"\x1bOH", Key::first},    {"\x1b[1~", Key::first},
    {"\x1b[7~", Key::first}, {"G", Key::last},       {"\x1b[F", Key::last},     {"\x1bOF", Key::last},
    {"\x1b[4~", Key::last},  {"\x1b[8~", Key::last}, {"e", Key::open},          {"\r", Key::open},
    {"\n", Key::open},       {"\x1bOM", Key::open},  {"r", Key::read_again},    {"\x1b", Key::back},
    {"q", Key::quit},        {"?", Key::help},
};

bool within(char c, char first, char last) {
  return c >= first && c <= last;
}

// The length of the first key in the text; 0: more bytes are needed. ECMA-48: parameters, intermediates, one final
// byte.
std::size_t length_of_key(std::string_view text) {
  if (text.front() != kEscape) return 1;
  if (text.size() == 1) return 0;
  const bool single_shift = text[1] == 'O';
  // Two keys that came together. With Alt terminals send the same bytes; no key with Alt has a meaning.
  if (text[1] != '[' && !single_shift) return 1;
  std::size_t at = 2;
  if (!single_shift)
    while (at < text.size() && within(text[at], ' ', '?')) ++at;
  if (at >= kLongestSequence) return at;
  if (at == text.size()) return 0;
  // Another byte than a final one ends the sequence and begins the next key: an Escape, for example.
  return within(text[at], '@', '~') ? at + 1 : at;
}

}  // namespace

std::vector<Key> KeyDecoder::decode(std::string_view bytes) {
  rest_ += bytes;
  std::vector<Key> out;
  std::size_t at = 0;
  while (at < rest_.size()) {
    const std::string_view left = std::string_view(rest_).substr(at);
    const std::size_t length = length_of_key(left);
    if (length == 0) break;
    const auto* const known =
        std::ranges::find(kMeanings, left.substr(0, length), &std::pair<std::string_view, Key>::first);
    if (known != std::end(kMeanings)) out.push_back(known->second);
    at += length;
  }
  rest_.erase(0, at);
  return out;
}

std::vector<Key> KeyDecoder::end_escape() {
  if (!escape_is_open()) return {};
  rest_.clear();
  return {Key::back};
}

namespace {

// `at` moved by that many places, of the places 0 to `last`.
std::size_t moved(std::size_t at, std::ptrdiff_t by, std::size_t last) {
  const std::ptrdiff_t to = static_cast<std::ptrdiff_t>(at) + by;
  return static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(to, 0, static_cast<std::ptrdiff_t>(last)));
}

}  // namespace

void Selection::follow(const std::vector<LiveLine>& lines, std::size_t rows) {
  const bool shown = shows_selection();
  const std::vector<NodeLine> before = std::exchange(nodes_, {});
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (!lines[i].node.empty()) nodes_.push_back({lines[i].node, lines[i].under, i});
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
std::size_t Selection::place_after(std::vector<NodeLine> before) const {
  // Those from the selected one on, then those before it, the nearest one first.
  const auto selected = before.begin() + static_cast<std::ptrdiff_t>(std::min(at_, before.size()));
  std::reverse(before.begin(), selected);
  std::rotate(before.begin(), selected, before.end());
  for (const NodeLine& line : before)
    if (const std::optional<std::size_t> place = find(line)) return *place;
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
    default:
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
  Pane& top = panes_.back();
  const bool leaves = key == Key::quit || key == Key::back;
  if (key == Key::help && top.is != Pane::Is::keys) {
    open({.is = Pane::Is::keys, .text = std::string(kKeys)});
  } else if (top.is == Pane::Is::keys && (leaves || key == Key::help)) {
    panes_.pop_back();
  } else if (top.is == Pane::Is::explanation && leaves) {
    panes_.pop_back();
    return Ask::forget;
  } else if (top.is == Pane::Is::explanation && key == Key::read_again) {
    top.read_at.clear();
    return Ask::explain;
  } else if (top.is == Pane::Is::tree && key == Key::quit) {
    return Ask::quit;
  } else if (top.is == Pane::Is::tree && key == Key::open && top.scroll.node() != nullptr) {
    open({.is = Pane::Is::explanation, .node = *top.scroll.node()});
    return Ask::explain;
  } else {
    top.scroll.move(key);
  }
  return Ask::nothing;
}

void LiveView::open(Pane pane) {
  lay_out(panes_.emplace_back(std::move(pane)));
}

const LiveView::Pane* LiveView::explanation() const {
  const auto found = std::ranges::find(panes_, Pane::Is::explanation, &Pane::is);
  return found == panes_.end() ? nullptr : &*found;
}

void LiveView::resize(const Screen& screen) {
  if (!screen.is_terminal()) return;
  screen_ = screen;
  for (Pane& pane : panes_) lay_out(pane);
}

Screen LiveView::room() const {
  Screen out = screen_;
  // At least one column: 0 means that the output is no terminal.
  out.columns = std::max(out.columns, kSelected.size() + 1) - kSelected.size();
  return out;
}

void LiveView::show(std::vector<LiveLine> lines) {
  panes_.front().lines = std::move(lines);
  lay_out(panes_.front());
}

void LiveView::show_explanation(const std::string& text, const std::string& read_at) {
  const auto open = std::ranges::find(panes_, Pane::Is::explanation, &Pane::is);
  if (open == panes_.end()) return;
  open->text = text;
  open->read_at = read_at;
  lay_out(*open);
}

// Without the row that names the keys.
std::size_t LiveView::rows() const {
  const std::size_t all = screen_.rows == 0 ? kUsualRows : screen_.rows;
  return all > 1 ? all - 1 : 1;
}

void LiveView::lay_out(Pane& pane) const {
  if (pane.is != Pane::Is::tree) {
    const std::string reading = one_line(fmt::format("Reading the cluster to explain node {} ...", pane.node)) + "\n";
    pane.lines.clear();
    append_text(pane.lines, wrapped(pane.text.empty() ? reading : pane.text, screen_.columns));
  }
  pane.scroll.follow(pane.lines, rows());
}

std::string LiveView::bar() const {
  const Pane& top = panes_.back();
  if (top.is == Pane::Is::keys) return "?, q, Esc: back";
  if (top.is == Pane::Is::explanation)
    return fmt::format("?: keys  q: back  r: read again  Up/Down: scroll  {}",
                       top.read_at.empty() ? "reading" : "read at " + top.read_at);
  const std::string* const node = top.scroll.node();
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
  const Selection& shown = panes_.back().scroll;
  const std::vector<LiveLine>& lines = panes_.back().lines;
  const bool in_tree = panes_.back().is == Pane::Is::tree;
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
