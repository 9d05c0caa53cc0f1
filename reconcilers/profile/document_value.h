// A YAML document as the JSON value that the plugin decodes, with the position of every key and value. The conversion
// is that of sigs.k8s.io/yaml: aliases and merges expanded, keys made strings, the last of equal keys wins.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reconcilers/profile/profile.h"
#include "reconcilers/profile/yaml_node.h"

namespace gso {

struct DocumentMember;

struct DocumentValue {
  enum class Kind { null, boolean, number, string, array, object } kind = Kind::null;
  bool boolean = false;
  bool literal_block = false;  // String from a literal block scalar.
  bool folded_block = false;   // String from a folded block scalar.
  Position at;
  std::string text;                     // String: its value. Number, boolean: the JSON literal.
  std::vector<DocumentValue> items;     // Array.
  std::vector<DocumentMember> members;  // Object, sorted by key (bytewise): the order in which upstream decodes.

  [[nodiscard]] bool is_null() const { return kind == Kind::null; }
  [[nodiscard]] bool is_string() const { return kind == Kind::string; }
  [[nodiscard]] bool is_array() const { return kind == Kind::array; }
  [[nodiscard]] bool is_object() const { return kind == Kind::object; }
  // The member of exactly this name, or nullptr. Also nullptr when this is no object.
  [[nodiscard]] const DocumentValue* find(std::string_view key) const;
  // The same, and null counts as absent, as it does for the API server.
  [[nodiscard]] const DocumentValue* present(std::string_view key) const;
  // The string of the member, or empty.
  [[nodiscard]] std::string_view string_at(std::string_view key) const;
};

// The value at that path of members, or nullptr.
[[nodiscard]] const DocumentValue* find_path(const DocumentValue& from, std::initializer_list<std::string_view> path);

struct DocumentMember {
  std::string key;
  Position key_at;
  DocumentValue value;
};

// What kind of target a value is decoded into, where that matters: upstream turns a number or boolean into a string
// when a field directly below the document is one. `object`: a Kubernetes object, without status.images, which is half
// of a Node's text and which nothing reads.
enum class DecodeTarget { none, config, flags, plugin_flags, string, object, object_status };

// Appends what is wrong (severity error: upstream refuses the document as a whole) or silently lost (warning) to
// `diagnostics`. The value is complete only when no error was added.
[[nodiscard]] DocumentValue to_document_value(const YamlNode& root, DecodeTarget target,
                                              std::vector<Diagnostic>& diagnostics);
// The value for who does not care.
[[nodiscard]] DocumentValue to_document_value(const YamlNode& root, DecodeTarget target = DecodeTarget::none);

// The path of a value in a document ("sharing.mps.resources[0].replicas"), kept while walking down and up again:
// appends one step to it for as long as it lives.
class PathStep {
 public:
  PathStep(std::string& path, std::string_view key) : path_(path), length_(path.size()) {
    if (!path.empty()) path += '.';
    path += key;
  }
  PathStep(std::string& path, std::size_t index) : path_(path), length_(path.size()) {
    path += '[';
    path += std::to_string(index);
    path += ']';
  }
  ~PathStep() { path_.resize(length_); }
  PathStep(const PathStep&) = delete;
  PathStep& operator=(const PathStep&) = delete;

 private:
  std::string& path_;
  std::size_t length_;
};

// The base of what walks a document and says what is wrong with it.
class DocumentCheck {
 protected:
  // `path`: where the walk begins.
  explicit DocumentCheck(std::vector<Diagnostic>& diagnostics, std::string path = {})
      : diagnostics_(diagnostics), path_(std::move(path)) {}

  void add(Severity severity, std::string_view code, std::string path, Position at, std::string message) {
    diagnostics_.push_back({severity, std::string(code), std::move(path), at, std::move(message)});
  }
  // About the value at path_.
  void error(std::string_view code, Position at, std::string message) {
    add(Severity::error, code, path_, at, std::move(message));
  }
  void warning(std::string_view code, Position at, std::string message) {
    add(Severity::warning, code, path_, at, std::move(message));
  }
  void info(std::string_view code, Position at, std::string message) {
    add(Severity::info, code, path_, at, std::move(message));
  }

  std::vector<Diagnostic>& diagnostics_;
  std::string path_;
};

// How values are called in messages: "a string", "a list", …
[[nodiscard]] std::string_view kind_name(DocumentValue::Kind kind);

}  // namespace gso
