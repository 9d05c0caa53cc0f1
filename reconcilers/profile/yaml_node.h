// YAML text as a tree of nodes with positions, built from libyaml's events: one document at a time, so that what
// follows the first document can be left alone, as the device plugin does; and what a scalar means.
//
// The plugin's YAML library is a port of an older libyaml. Where the two read a text differently, and no profile has
// such a text, it is refused (UnsupportedYAML).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "reconcilers/profile/profile.h"

namespace gso {

struct YamlNode {
  enum class Kind { scalar, sequence, mapping, alias } kind = Kind::scalar;
  bool implicit = false;             // Scalar: the value's look decides its type (plain, no tag).
  bool literal = false;              // Scalar: a literal block ("|"), whose lines are in the text unchanged.
  bool folded = false;               // Scalar: a folded block (">"), whose lines are joined.
  Position at;                       // In the text as it was given.
  std::string tag;                   // Long form: tag:yaml.org,2002:int. Tags of collections are not kept (upstream).
  std::string value;                 // Scalar: the text. Alias: the anchor's name.
  const YamlNode* target = nullptr;  // Alias: the node that it repeats.
  std::vector<const YamlNode*> children;  // Sequence: items. Mapping: key, value, key, value, …
};

// std::monostate is null.
using YamlScalar = std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string>;
// What a YAML 1.1 scalar means, exactly as the plugin's YAML library (go.yaml.in/yaml/v2) resolves it. nullopt when an
// explicit tag contradicts the text (!!int four, !!binary with bad base64): upstream refuses the document.
[[nodiscard]] std::optional<YamlScalar> resolve_scalar(const YamlNode& node);

struct YamlError {
  std::string code;  // SyntaxError, UnsupportedYAML, UnknownAnchor, TooDeep, TooLarge
  Position at;
  std::string message;
  Position cause{};  // Another line that may be the wrong one; its line is 0 when there is none.
  std::string cause_message{};
};

// The nodes of one document. Addresses are stable; destruction does not recurse.
struct YamlDocument {
  std::deque<YamlNode> nodes;
  const YamlNode* root = nullptr;
};

struct YamlLimits {
  std::size_t bytes = std::size_t{1} << 20;  // A ConfigMap holds 1 MiB at most.
  int depth = 500;                           // Nested collections.
  int first_line = 1;                        // What the first line of the text is called in positions.
};

// Receives one item of the list `items` of a document's root, a mapping, with everything below it. It is left out of
// the document, and its nodes are gone after the call.
using YamlItem = std::function<void(const YamlNode& item)>;

// Reads the documents of a text one after the other. Never throws on bad input.
class YamlStream {
 public:
  // The text must outlive the stream.
  explicit YamlStream(std::string_view text, YamlLimits limits = {});
  explicit YamlStream(std::string&& text, YamlLimits limits = {}) = delete;
  ~YamlStream();
  YamlStream(const YamlStream&) = delete;
  YamlStream& operator=(const YamlStream&) = delete;

  // The next document; nullopt at the end of the text or after an error, which error() then has. `item`: is called
  // while the document is read, so that a List of a whole cluster takes the memory of one object; empty: for none.
  [[nodiscard]] std::optional<YamlDocument> next(const YamlItem& item = {});
  [[nodiscard]] const std::optional<YamlError>& error() const { return error_; }

 private:
  struct Parser;
  struct Builder;
  void fail(std::string code, Position at, std::string message);
  // The place in the file, from the place in the text.
  [[nodiscard]] Position shown(Position at) const { return {at.line + limits_.first_line - 1, at.column}; }
  bool pull();                  // The next event into the parser; false on a syntax error.
  void take(Builder& builder);  // Adds the event to the document.
  [[nodiscard]] bool passes_mark(Position at) const;
  void fail_at_mark();
  void syntax_error(bool in_flow);

  std::string_view text_;           // Without the byte order mark at its beginning.
  std::unique_ptr<Parser> parser_;  // Reads text_.
  YamlLimits limits_;
  std::optional<Position> mark_;  // Of a byte order mark inside the text.
  std::optional<YamlError> error_;
  bool done_ = false;
};

// What libyaml says about a text that it refuses, with places in the text.
struct YamlProblem {
  std::string problem;
  std::string context;  // Empty: none.
  Position at;
  Position context_at;
  int lines_before = 0;  // The text, in its file.
};
// The error for it, in the same places (yaml_syntax_error.cc).
[[nodiscard]] YamlError explain_syntax_error(std::string_view text, const YamlProblem& found);

// JSON with its strings spelt so that YAML reads in them what JSON does: surrogate pairs become one escape, and
// characters that YAML refuses or takes as the end of a line become escapes. nullopt where nothing needs that, and for
// what does not begin as JSON. Lines stay as they are.
[[nodiscard]] std::optional<std::string> json_for_yaml(std::string_view text);

// The offset of a place in a text, and the place of an offset, as libyaml counts: lines end in "\n", "\r", "\r\n", and
// unlike in editors in U+0085, U+2028 and U+2029.
[[nodiscard]] std::size_t offset_of(std::string_view text, Position place);
[[nodiscard]] Position place_of(std::string_view text, std::size_t offset);

}  // namespace gso
