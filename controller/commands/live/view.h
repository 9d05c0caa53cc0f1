// A live view as a person uses it: lines with a selected node, what `explain` says of it, and the keys. Without a
// terminal: keys and lines come in, pages go out.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/commands/live/keys.h"
#include "controller/commands/live/lines.h"
#include "controller/commands/live/selection.h"
#include "controller/commands/shared/screen.h"

namespace gso {

class LiveView {
 public:
  explicit LiveView(const Screen& screen) : screen_(screen) {}

  // What a key needs from outside.
  enum class Ask {
    nothing,
    explain,  // The text of asked_node(): show_explanation().
    forget,   // It is no longer wanted.
    quit,
  };
  [[nodiscard]] Ask press(Key key);
  // Of the explanation that is open; empty: none is.
  [[nodiscard]] std::string asked_node() const { return explanation_ ? explanation_->node : std::string(); }

  void resize(const Screen& screen);
  // What the lines of show() have room for: columns are left for the mark of the selection.
  [[nodiscard]] Screen room() const;
  void show(std::vector<LiveLine> lines);
  // `read_at`: when the cluster was read. Without effect if no explanation is open.
  void show_explanation(const std::string& text, const std::string& read_at);

  // All rows of the screen; the last one names the keys.
  [[nodiscard]] std::string page() const;

 private:
  // Text over the tree: what `explain` says, or the keys.
  struct Pane {
    std::string node;     // Of an explanation.
    std::string text;     // Empty: it is being read.
    std::string read_at;  // Empty: it is being read, or read again.
    std::vector<LiveLine> lines{};
    Selection scroll{};
  };
  [[nodiscard]] Ask press_in_tree(Key key);
  [[nodiscard]] Ask press_in_explanation(Key key);
  [[nodiscard]] std::size_t rows() const;
  void lay_out(Pane& pane) const;
  [[nodiscard]] std::string bar() const;
  [[nodiscard]] std::string row(const LiveLine& line, bool selectable, bool selected) const;

  Screen screen_;
  std::vector<LiveLine> tree_;
  Selection selection_;
  std::optional<Pane> explanation_;
  std::optional<Pane> keys_;
};

}  // namespace gso
