// YAML text as a tree of nodes with positions, built from libyaml's events: one document at a time, so that what
// follows the first document can be left alone, as the device plugin does. No scalar is interpreted here.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/profile/yaml_dialect.h"

namespace gso {

struct YamlNode {
  enum class Kind { scalar, sequence, mapping, alias } kind = Kind::scalar;
  bool implicit = false;             // Scalar: the value's look decides its type (plain, no tag).
  bool literal = false;              // Scalar: a literal block ("|"), whose lines are in the text unchanged.
  bool folded = false;               // Scalar: a folded block (">"), whose lines are joined.
  Position at;                       // In the text as it was given.
  Position in_text;                  // As libyaml counts: from the text's own first line, all breaks of YAML 1.1.
  std::string tag;                   // Long form: tag:yaml.org,2002:int. Tags of collections are not kept (upstream).
  std::string value;                 // Scalar: the text. Alias: the anchor's name.
  const YamlNode* target = nullptr;  // Alias: the node that it repeats.
  std::vector<const YamlNode*> children;  // Sequence: items. Mapping: key, value, key, value, …
};

struct YamlError {
  std::string code;  // SyntaxError, UnknownAnchor, TooDeep, TooLarge
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

// Receives the mappings in the list `items` of a document's root while the document is read, so that a List of a whole
// cluster takes the memory of one object.
class YamlItems {
 public:
  YamlItems() = default;
  virtual ~YamlItems() = default;
  YamlItems(const YamlItems&) = delete;
  YamlItems& operator=(const YamlItems&) = delete;
  // One item, with everything below it. It is left out of the document, and its nodes are gone after the call.
  virtual void item(const YamlNode& node) = 0;
  // The document is read again from its beginning: its items come once more.
  virtual void restart() = 0;
};

// Reads the documents of a text one after the other. Never throws on bad input.
class YamlStream {
 public:
  explicit YamlStream(std::string_view text, YamlLimits limits = {});
  ~YamlStream();
  YamlStream(const YamlStream&) = delete;
  YamlStream& operator=(const YamlStream&) = delete;

  // The next document; nullopt at the end of the text or after an error, which error() then has. `items`: gets the
  // document's items, which the document then lacks.
  [[nodiscard]] std::optional<YamlDocument> next(YamlItems* items = nullptr);
  [[nodiscard]] const std::optional<YamlError>& error() const { return error_; }

 private:
  struct Parser;
  struct Builder;
  void fail(std::string code, Position at, std::string message);
  // The place as an editor shows it, from the place as libyaml counts it.
  [[nodiscard]] Position shown(Position at) const;
  bool pull();  // The next event into the parser; false on a syntax error.
  void syntax_error(const Builder& builder);
  // For texts that the plugin's library reads differently: true if the character was replaced (yaml_dialect.h) and
  // reading has started again.
  bool retry(std::size_t offset, Stumble stumble);
  bool retry_after_error();
  bool retry_after_scalar(const Builder& builder);

  std::string text_;
  std::unique_ptr<Parser> parser_;  // Reads text_.
  int documents_ = 0;               // Returned so far.
  int retries_ = 0;
  YamlLimits limits_;
  std::vector<int> odd_breaks_;  // Lines, as libyaml counts, that end where an editor sees no end.
  std::optional<YamlError> error_;
  bool done_ = false;
};

}  // namespace gso
