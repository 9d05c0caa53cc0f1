// YAML nodes to JSON values: aliases, merges, keys.
#include "reconcilers/profile/document_value.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "k8sclient/value/encoding.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/profile/field_names.h"
#include "reconcilers/profile/go_text.h"

namespace gso {
namespace {

// Upstream accepts documents with 99 % of their nodes from aliases; no real profile of 1 MiB has this many.
constexpr int kMaxExpandedNodes = 100'000;

constexpr int kMaxOfASeverity = 500;

// The library's rule against alias bombs, for documents of the size that the limit above lets through.
bool excessive_aliasing(int expanded, int decoded) {
  return expanded > 100 && decoded > 1000 && static_cast<double>(expanded) / decoded > 0.99;
}

// The target of a field, found as upstream finds it: in `flags`, whose fields are embedded, it looks into the wrong
// struct, so that strings below flags are not converted.
DecodeTarget target_of(DecodeTarget target, const std::string& key) {
  const auto flag = [&] { return find_field(kFlags, key); };
  switch (target) {
    case DecodeTarget::config:
      return equal_fold(key, "version") ? DecodeTarget::string
             : equal_fold(key, "flags") ? DecodeTarget::flags
                                        : DecodeTarget::none;
    case DecodeTarget::object:
      return key == "status" ? DecodeTarget::object_status : DecodeTarget::none;
    case DecodeTarget::flags:
      return flag() != nullptr ? DecodeTarget::plugin_flags : DecodeTarget::none;
    case DecodeTarget::plugin_flags:
      return flag() != nullptr && flag()->kind == FieldKind::text ? DecodeTarget::string : DecodeTarget::none;
    default:
      return DecodeTarget::none;
  }
}

// Fields of Kubernetes objects that nothing reads, and that are large.
bool is_left_out(DecodeTarget target, const std::string& key) {
  return target == DecodeTarget::object_status && key == "images";
}

class Converter {
 public:
  explicit Converter(std::vector<Diagnostic>& diagnostics) : diagnostics_(diagnostics) {}

  DocumentValue convert(const YamlNode& node, DecodeTarget target) {
    if (!count(node)) return {};
    switch (node.kind) {
      case YamlNode::Kind::alias:
        return alias(node, target);
      case YamlNode::Kind::scalar:
        return scalar(node, target);
      case YamlNode::Kind::sequence:
        return sequence(node);
      case YamlNode::Kind::mapping:
        break;
    }
    DocumentValue value;
    value.kind = DocumentValue::Kind::object;
    value.at = node.at;
    Members members;
    fill(node, target, members);
    for (auto& [key, entry] : members) value.members.push_back({key, entry.key_at, std::move(entry.value)});
    return value;
  }

 private:
  struct Entry {
    Position key_at;
    DocumentValue value;
    bool merged = false;  // Came in by "<<".
  };
  using Members = std::map<std::string, Entry>;

  void add(Severity severity, std::string code, Position at, std::string message) {
    int& count = severity == Severity::error ? errors_ : warnings_;
    if (++count > kMaxOfASeverity) return;  // More diagnostics than anybody reads.
    Diagnostic found{severity, std::move(code), path_, at, std::move(message)};
    if (std::find(diagnostics_.begin(), diagnostics_.end(), found) == diagnostics_.end())
      diagnostics_.push_back(std::move(found));
  }
  void error(std::string code, Position at, std::string message) {
    add(Severity::error, std::move(code), at, std::move(message));
  }

  // False once the expansion has gone too far; everything after that is skipped.
  bool count(const YamlNode& node) {
    if (too_many_) return false;
    ++decoded_;
    expanded_ += aliases_.empty() ? 0 : 1;
    if (expanded_ > kMaxExpandedNodes || excessive_aliasing(expanded_, decoded_)) {
      too_many_ = true;
      error("TooManyAliases", node.at,
            fmt::format("aliases make up {} of {} values so far, which is too many; write the values out", expanded_,
                        decoded_));
    }
    return !too_many_;
  }

  // True when the alias may be followed; leave() must be called then.
  bool enter(const YamlNode& node) {
    if (aliases_.insert(node.target).second) return true;
    error("AliasContainsItself", node.at,
          fmt::format("the value of anchor &{0} contains itself by *{0}", shown_value(node.value)));
    return false;
  }
  void leave(const YamlNode& node) { aliases_.erase(node.target); }

  DocumentValue alias(const YamlNode& node, DecodeTarget target) {
    DocumentValue value;
    if (enter(node)) {
      value = convert(*node.target, target);
      leave(node);
    }
    return value;
  }

  DocumentValue sequence(const YamlNode& node) {
    DocumentValue value;
    value.kind = DocumentValue::Kind::array;
    value.at = node.at;
    value.items.reserve(node.children.size());
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      const PathStep step(path_, i);
      value.items.push_back(convert(*node.children[i], DecodeTarget::none));
    }
    return value;
  }

  // nullopt after an error. `at`: of the alias, if the scalar is reached by one.
  std::optional<YamlScalar> resolved(const YamlNode& node, Position at) {
    auto scalar = resolve_scalar(node);
    if (!scalar)
      error("ValueContradictsTag", at,
            fmt::format("\"{}\" is not a valid value for the tag {}", shown_value(node.value),
                        shown_value(short_tag(node.tag))));
    return scalar;
  }

  DocumentValue scalar(const YamlNode& node, DecodeTarget target) {
    const auto found = resolved(node, node.at);
    DocumentValue value = found ? value_of(*found, node) : DocumentValue();
    value.at = node.at;
    value.literal_block = node.literal;
    value.folded_block = node.folded;
    const auto* number = found ? std::get_if<double>(&*found) : nullptr;
    const bool convertible = value.kind == DocumentValue::Kind::number || value.kind == DocumentValue::Kind::boolean;
    if (target == DecodeTarget::string && convertible) {
      value.kind = DocumentValue::Kind::string;
    } else if (number != nullptr && !std::isfinite(*number)) {
      error("NumberNotFinite", node.at,
            fmt::format("\"{}\" is not a finite number; upstream refuses the whole document", shown_value(node.value)));
    }
    return value;
  }

  static DocumentValue value_of(const YamlScalar& scalar, const YamlNode& node) {
    using enum DocumentValue::Kind;
    constexpr std::array kKinds{null, DocumentValue::Kind::boolean, number, number, number, string};
    DocumentValue value;
    value.kind = kKinds[scalar.index()];
    if (const auto* boolean = std::get_if<bool>(&scalar)) {
      value.boolean = *boolean;
      value.text = *boolean ? "true" : "false";
    } else if (const auto* integer = std::get_if<std::int64_t>(&scalar)) {
      value.text = std::to_string(*integer);
    } else if (const auto* natural = std::get_if<std::uint64_t>(&scalar)) {
      value.text = std::to_string(*natural);
    } else if (const auto* real = std::get_if<double>(&scalar)) {
      value.text = std::isfinite(*real) ? json_number(*real) : node.value;
    } else if (const auto* text = std::get_if<std::string>(&scalar)) {
      value.text = k8s::replace_invalid_utf8(*text);
    }
    return value;
  }

  static std::string short_tag(const std::string& tag) {
    constexpr std::string_view kPrefix = "tag:yaml.org,2002:";
    return tag.starts_with(kPrefix) ? "!!" + tag.substr(kPrefix.size()) : tag;
  }

  static bool is_merge(const YamlNode& key) {
    return key.kind == YamlNode::Kind::scalar && key.value == "<<" &&
           (key.implicit || key.tag == "tag:yaml.org,2002:merge");
  }

  // The key as a string; nullopt after an error.
  std::optional<std::string> key_text(const YamlNode& node) {
    const YamlNode& key = node.kind == YamlNode::Kind::alias ? *node.target : node;  // Never another alias.
    if (!count(node) || (&key != &node && !count(key))) return std::nullopt;
    if (key.kind != YamlNode::Kind::scalar) {
      error("KeyNotScalar", node.at, "a list or a mapping cannot be a key; a string is needed");
      return std::nullopt;
    }
    const auto found = resolved(key, node.at);
    if (!found) return std::nullopt;
    if (std::holds_alternative<std::monostate>(*found) || std::holds_alternative<std::uint64_t>(*found)) {
      error("KeyNotString", node.at, fmt::format("\"{}\" cannot be a key; a string is needed", shown_value(key.value)));
      return std::nullopt;
    }
    return value_of(*found, key).text;
  }

  // In the order of the text, as upstream: a merge overwrites the members before it, and is overwritten by those after
  // it.
  void fill(const YamlNode& node, DecodeTarget target, Members& members) {
    for (std::size_t i = 0; i + 1 < node.children.size() && !too_many_; i += 2) {
      const YamlNode& key_node = *node.children[i];
      const YamlNode& value_node = *node.children[i + 1];
      if (is_merge(key_node)) {
        merge(value_node, target, members);
        continue;
      }
      const auto key = key_text(key_node);
      if (!key) {
        static_cast<void>(convert(value_node, DecodeTarget::none));  // Upstream reads it too.
        continue;
      }
      if (is_left_out(target, *key)) continue;
      const PathStep step(path_, *key);
      put(members, *key, key_node, convert(value_node, target_of(target, *key)));
    }
  }

  void put(Members& members, const std::string& key, const YamlNode& key_node, DocumentValue value) {
    const bool merging = merge_depth_ > 0;
    const auto [found, fresh] = members.try_emplace(key);
    if (!fresh && !merging && !found->second.merged) {
      add(Severity::warning, "DuplicateKey", key_node.at,
          fmt::format("\"{}\" appears twice; the value in line {} is ignored, this one is used", shown_value(key),
                      found->second.key_at.line));
    } else if (!fresh && merging && !found->second.merged) {
      add(Severity::warning, "MergeOverridesKey", found->second.key_at,
          fmt::format("\"{}\" is overwritten by the \"<<\" that follows it; put \"<<\" first", shown_value(key)));
    }
    found->second = Entry{key_node.at, std::move(value), merging};
  }

  void merge(const YamlNode& node, DecodeTarget target, Members& members) {
    if (node.kind == YamlNode::Kind::sequence)
      for (auto item = node.children.rbegin(); item != node.children.rend(); ++item) merge_one(**item, target, members);
    else
      merge_one(node, target, members);
  }

  void merge_one(const YamlNode& node, DecodeTarget target, Members& members) {
    const bool is_alias = node.kind == YamlNode::Kind::alias;
    const YamlNode& source = is_alias ? *node.target : node;
    if (source.kind != YamlNode::Kind::mapping) {
      error("MergeNeedsMapping", node.at, "\"<<\" needs a mapping or a list of mappings");
      return;
    }
    if (!count(node) || (is_alias && !enter(node))) return;
    if (!is_alias || count(source)) {
      ++merge_depth_;
      fill(source, target, members);
      --merge_depth_;
    }
    if (is_alias) leave(node);
  }

  std::vector<Diagnostic>& diagnostics_;
  std::string path_;
  std::set<const YamlNode*> aliases_;  // Being expanded.
  int merge_depth_ = 0;
  int errors_ = 0;
  int warnings_ = 0;
  int decoded_ = 1;   // Upstream counts the document itself.
  int expanded_ = 0;  // Of these, below an alias.
  bool too_many_ = false;
};

}  // namespace

const DocumentValue* DocumentValue::find(std::string_view key) const {
  const auto found = std::ranges::lower_bound(members, key, {}, &DocumentMember::key);
  return found == members.end() || found->key != key ? nullptr : &found->value;
}

const DocumentValue* DocumentValue::present(std::string_view key) const {
  const DocumentValue* value = find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

const DocumentValue* find_path(const DocumentValue& from, std::initializer_list<std::string_view> path) {
  const DocumentValue* at = &from;
  for (const std::string_view field : path) at = at == nullptr ? nullptr : at->find(field);
  return at;
}

std::string_view DocumentValue::string_at(std::string_view key) const {
  const DocumentValue* value = find(key);
  return value != nullptr && value->is_string() ? std::string_view(value->text) : std::string_view();
}

DocumentValue to_document_value(const YamlNode& root, DecodeTarget target, std::vector<Diagnostic>& diagnostics) {
  return Converter(diagnostics).convert(root, target);
}

DocumentValue to_document_value(const YamlNode& root, DecodeTarget target) {
  std::vector<Diagnostic> unused;
  return to_document_value(root, target, unused);
}

std::string_view kind_name(DocumentValue::Kind kind) {
  static constexpr std::array<std::string_view, 6> kNames{"null",     "a boolean", "a number",
                                                          "a string", "a list",    "a mapping"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace gso
