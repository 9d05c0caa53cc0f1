// A live view as a person uses it: lines with a selected node, what `explain` says of it, and the keys. Without a
// terminal: bytes of keys and lines come in, pages go out.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/commands/shared/print.h"

namespace gso {

// A line of a live view: text, and the node that it is about.
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
// The lines as one page over the last one: those that do not fit are counted in the last row.
[[nodiscard]] std::string page_of(const std::vector<LiveLine>& lines, const Screen& screen);

// What a key means in a live view. Several keys can mean the same.
enum class Key { up, down, page_up, page_down, first, last, open, read_again, back, quit, help };

// Keys of a person at a terminal, from the bytes that the terminal sends.
// The sequences are those that xterm and the terminals that follow it send (also the Linux console, tmux and screen),
// as what is written to the terminal are ANSI sequences without terminfo. Bytes without a meaning here are skipped, a
// sequence as a whole.
class KeyDecoder {
 public:
  // Keys whose bytes are complete. The rest is kept: a read can end in the middle of a sequence.
  [[nodiscard]] std::vector<Key> decode(std::string_view bytes);
  // An Escape is the last byte: the key, or the beginning of a sequence whose other bytes follow.
  [[nodiscard]] bool escape_is_open() const { return rest_ == "\x1b"; }
  // No more bytes have come for a while: it is the key.
  [[nodiscard]] std::vector<Key> end_escape();

 private:
  std::string rest_;
};

// Which node of a live view is selected, and which of its lines are on the screen. Lines without nodes are only
// scrolled.
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
  [[nodiscard]] std::size_t place_after(std::vector<NodeLine> before) const;
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

// The view itself: the tree, an explanation or the keys over it, and the row that names the keys.
class LiveView {
 public:
  explicit LiveView(const Screen& screen) : screen_(screen), panes_(1) {}

  // What a key needs from outside.
  enum class Ask {
    nothing,
    explain,  // The text of asked_node(): show_explanation().
    forget,   // It is no longer wanted.
    quit,
  };
  [[nodiscard]] Ask press(Key key);
  // Of the explanation that is open; empty: none is.
  [[nodiscard]] std::string asked_node() const {
    return explanation() == nullptr ? std::string() : explanation()->node;
  }

  void resize(const Screen& screen);
  // What the lines of show() have room for: columns are left for the mark of the selection.
  [[nodiscard]] Screen room() const;
  void show(std::vector<LiveLine> lines);
  // `read_at`: when the cluster was read. Without effect if no explanation is open.
  void show_explanation(const std::string& text, const std::string& read_at);

  // All rows of the screen; the last one names the keys.
  [[nodiscard]] std::string page() const;

 private:
  // The tree, or text over it.
  struct Pane {
    enum class Is { tree, explanation, keys } is = Is::tree;
    std::string node{};     // Of an explanation.
    std::string text{};     // Of what is no tree; empty: it is being read.
    std::string read_at{};  // Empty: it is being read, or read again.
    std::vector<LiveLine> lines{};
    Selection scroll{};
  };
  void open(Pane pane);
  // Null: none is open.
  [[nodiscard]] const Pane* explanation() const;
  [[nodiscard]] std::size_t rows() const;
  void lay_out(Pane& pane) const;
  [[nodiscard]] std::string bar() const;
  [[nodiscard]] std::string row(const LiveLine& line, bool selectable, bool selected) const;

  Screen screen_;
  // The tree, what `explain` says over it, and the keys over both. The last one is on the screen.
  std::vector<Pane> panes_;
};

}  // namespace gso
