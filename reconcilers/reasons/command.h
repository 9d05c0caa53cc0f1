// What to type next, as a value: whoever prints it decides how it looks, and nobody reads the line to learn what it
// does.
#pragma once

#include <cstdint>
#include <string>

namespace gso {

struct Command {
  // What typing it does.
  enum class Does : std::uint8_t {
    shows,    // Nothing changes.
    watches,  // As `shows`, of what a running operator does: `rollout status`.
    changes,  // An object changes: `kubectl edit`, `patch`, `annotate`, a Helm release.
    asks,     // The operator carries it out: `rollout start`, `approve`, `resume`, …
    retries,  // As `asks`, and failed nodes are tried again.
  };
  std::string line = {};     // With its arguments quoted for a shell. Empty: nothing is known to type.
  std::string comment = {};  // What it shows, or who decides; printed after "  # ". Can be empty.
  Does does = Does::shows;
  std::string node = {};  // The node that the line names; empty: none.

  [[nodiscard]] bool empty() const { return line.empty(); }
  // Only a running operator carries it out, or has something to show by it.
  [[nodiscard]] bool needs_operator() const {
    return does == Does::watches || does == Does::asks || does == Does::retries;
  }
  // "line  # comment".
  [[nodiscard]] std::string text() const { return comment.empty() ? line : line + "  # " + comment; }
  friend auto operator<=>(const Command&, const Command&) = default;
};

}  // namespace gso
