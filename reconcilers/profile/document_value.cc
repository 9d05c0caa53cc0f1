// YAML nodes to JSON values: aliases, merges, keys.
#include "reconcilers/profile/document_value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <utility>

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

// A float as a key. Upstream writes it in Go's shortest 32-bit form; that differs only for keys that no field has.
std::string float_key(double value) {
  if (std::isnan(value)) return ".nan";
  const auto narrow = static_cast<float>(value);
  if (std::isinf(narrow)) return value < 0 ? "-.inf" : ".inf";
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), narrow).ptr;
  return {buffer.data(), end};
}

// The target of a field, found as upstream finds it: in `flags`, whose fields are embedded, it looks into the wrong
// struct, so that strings below flags are not converted.
DecodeTarget target_of(DecodeTarget target, const std::string& key) {
  const auto is_text_flag = [&](const SettingField& field) {
    return field.kind == SettingKind::text && equal_fold(key, field.name);
  };
  switch (target) {
    case DecodeTarget::config:
      return equal_fold(key, "version") ? DecodeTarget::string
             : equal_fold(key, "flags") ? DecodeTarget::flags
                                        : DecodeTarget::none;
    case DecodeTarget::object:
      return key == "status" ? DecodeTarget::object_status : DecodeTarget::none;
    case DecodeTarget::flags:
      return find_field(kFlagFields, key) != kFlagFields.end() ? DecodeTarget::plugin_flags : DecodeTarget::none;
    case DecodeTarget::plugin_flags:
      return std::ranges::any_of(kFlags, is_text_flag) ? DecodeTarget::string : DecodeTarget::none;
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
    if (!count(node)) {
      return {};
    }
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
    fill(node, target, members, value);
    for (auto& [key, entry] : members) {
      value.members.push_back({key, entry.key_at, std::move(entry.value)});
    }
    return value;
  }

 private:
  struct Entry {
    Position key_at;
    DocumentValue value;
    bool merged = false;  // Came in by "<<".
  };
  using Members = std::map<std::string, Entry>;

  void add(Diagnostic::Severity severity, std::string code, Position at, std::string message) {
    int& count = severity == Diagnostic::Severity::error ? errors_ : warnings_;
    if (++count > kMaxOfASeverity) return;  // More diagnostics than anybody reads.
    Diagnostic found{severity, std::move(code), path_, at.line, at.column, std::move(message)};
    if (std::find(diagnostics_.begin(), diagnostics_.end(), found) == diagnostics_.end()) {
      diagnostics_.push_back(std::move(found));
    }
  }
  void error(std::string code, Position at, std::string message) {
    add(Diagnostic::Severity::error, std::move(code), at, std::move(message));
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

  DocumentValue scalar(const YamlNode& node, DecodeTarget target) {
    DocumentValue value;
    value.at = node.at;
    value.literal_block = node.literal;
    value.folded_block = node.folded;
    const auto resolved = resolve_scalar(node);
    if (!resolved) {
      error("ValueContradictsTag", node.at,
            fmt::format("\"{}\" is not a valid value for the tag {}", shown_value(node.value),
                        shown_value(short_tag(node.tag))));
      return value;
    }
    set(value, *resolved, node);
    const bool convertible = value.kind == DocumentValue::Kind::number || value.kind == DocumentValue::Kind::boolean;
    if (target == DecodeTarget::string && convertible) {
      if (value.kind == DocumentValue::Kind::boolean) value.text = value.boolean ? "true" : "false";
      value.kind = DocumentValue::Kind::string;
    } else if (const auto* number = std::get_if<double>(&*resolved); number != nullptr && !std::isfinite(*number)) {
      refuse(
          value, "NumberNotFinite", node.at,
          fmt::format("\"{}\" is not a finite number; upstream refuses the whole document", shown_value(node.value)));
    }
    return value;
  }

  static void set(DocumentValue& value, const YamlScalar& resolved, const YamlNode& node) {
    using Kind = DocumentValue::Kind;
    if (std::holds_alternative<std::monostate>(resolved)) {
      value.kind = Kind::null;
    } else if (const auto* boolean = std::get_if<bool>(&resolved)) {
      value.kind = Kind::boolean;
      value.boolean = *boolean;
    } else if (const auto* integer = std::get_if<std::int64_t>(&resolved)) {
      value.kind = Kind::number;
      value.text = std::to_string(*integer);
    } else if (const auto* natural = std::get_if<std::uint64_t>(&resolved)) {
      value.kind = Kind::number;
      value.text = std::to_string(*natural);
    } else if (const auto* real = std::get_if<double>(&resolved)) {
      value.kind = Kind::number;
      value.text = std::isfinite(*real) ? json_number(*real) : node.value;
    } else {
      value.kind = Kind::string;
      value.text = k8s::replace_invalid_utf8(std::get<std::string>(resolved));
    }
  }

  static std::string short_tag(const std::string& tag) {
    constexpr std::string_view kPrefix = "tag:yaml.org,2002:";
    return tag.starts_with(kPrefix) ? "!!" + tag.substr(kPrefix.size()) : tag;
  }

  static bool is_merge(const YamlNode& key) {
    return key.kind == YamlNode::Kind::scalar && key.value == "<<" &&
           (key.implicit || key.tag == "tag:yaml.org,2002:merge");
  }

  static void refuse(DocumentValue& value, std::string code, Position at, std::string why) {
    value.refused_code = std::move(code);
    value.refused = std::move(why);
    value.refused_at = at;
  }

  // The key as a string; nullopt after an error, and for a key that `object` is refused for.
  std::optional<std::string> key_text(const YamlNode& node, DocumentValue& object) {
    if (!count(node)) return std::nullopt;
    const YamlNode* key = &node;
    if (node.kind == YamlNode::Kind::alias) {
      key = node.target;  // A node, never another alias.
      if (!enter(node)) return std::nullopt;
      const bool fine = count(*key);
      leave(node);
      if (!fine) return std::nullopt;
    }
    if (key->kind != YamlNode::Kind::scalar) {
      error("KeyNotScalar", node.at, "a list or a mapping cannot be a key; a string is needed");
      return std::nullopt;
    }
    const auto resolved = resolve_scalar(*key);
    if (!resolved) {
      error("ValueContradictsTag", node.at,
            fmt::format("\"{}\" is not a valid value for the tag {}", shown_value(key->value),
                        shown_value(short_tag(key->tag))));
      return std::nullopt;
    }
    if (std::holds_alternative<std::monostate>(*resolved) || std::holds_alternative<std::uint64_t>(*resolved)) {
      refuse(object, "KeyNotString", node.at,
             fmt::format("\"{}\" cannot be a key; a string is needed", shown_value(key->value)));
      return std::nullopt;
    }
    if (const auto* real = std::get_if<double>(&*resolved)) return float_key(*real);
    DocumentValue value;
    set(value, *resolved, *key);
    return value.kind == DocumentValue::Kind::boolean ? (value.boolean ? "true" : "false") : value.text;
  }

  // In the order of the text, as upstream: a merge overwrites the members before it, and is overwritten by those after
  // it.
  void fill(const YamlNode& node, DecodeTarget target, Members& members, DocumentValue& object) {
    for (std::size_t i = 0; i + 1 < node.children.size() && !too_many_; i += 2) {
      const YamlNode& key_node = *node.children[i];
      const YamlNode& value_node = *node.children[i + 1];
      if (is_merge(key_node)) {
        merge(value_node, target, members, object);
        continue;
      }
      const auto key = key_text(key_node, object);
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
      add(Diagnostic::Severity::warning, "DuplicateKey", key_node.at,
          fmt::format("\"{}\" appears twice; the value in line {} is ignored, this one is used", shown_value(key),
                      found->second.key_at.line));
    } else if (!fresh && merging && !found->second.merged) {
      add(Diagnostic::Severity::warning, "MergeOverridesKey", found->second.key_at,
          fmt::format("\"{}\" is overwritten by the \"<<\" that follows it; put \"<<\" first", shown_value(key)));
    }
    found->second = Entry{key_node.at, std::move(value), merging};
  }

  void merge(const YamlNode& node, DecodeTarget target, Members& members, DocumentValue& object) {
    if (node.kind == YamlNode::Kind::sequence) {
      for (auto item = node.children.rbegin(); item != node.children.rend(); ++item) {
        merge_one(**item, target, members, object);
      }
    } else {
      merge_one(node, target, members, object);
    }
  }

  void merge_one(const YamlNode& node, DecodeTarget target, Members& members, DocumentValue& object) {
    const bool is_alias = node.kind == YamlNode::Kind::alias;
    const YamlNode& source = is_alias ? *node.target : node;
    if (source.kind != YamlNode::Kind::mapping) {
      error("MergeNeedsMapping", node.at, "\"<<\" needs a mapping or a list of mappings");
      return;
    }
    if (!count(node) || (is_alias && !enter(node))) return;
    if (!is_alias || count(source)) {
      ++merge_depth_;
      fill(source, target, members, object);
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

void report_refused(const DocumentValue& value, std::string& path, std::vector<Diagnostic>& diagnostics) {
  if (!value.refused.empty()) {
    diagnostics.push_back({Diagnostic::Severity::error, value.refused_code, path, value.refused_at.line,
                           value.refused_at.column, value.refused});
  }
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    const PathStep step(path, i);
    report_refused(value.items[i], path, diagnostics);
  }
  for (const DocumentMember& member : value.members) {
    const PathStep step(path, member.key);
    report_refused(member.value, path, diagnostics);
  }
}

}  // namespace

const DocumentValue* DocumentValue::find(std::string_view key) const {
  const auto found = std::ranges::lower_bound(members, key, {}, &DocumentMember::key);
  return found == members.end() || found->key != key ? nullptr : &found->value;
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
  DocumentValue value = Converter(diagnostics).convert(root, target);
  std::string path;
  report_refused(value, path, diagnostics);
  return value;
}

std::string_view kind_name(DocumentValue::Kind kind) {
  switch (kind) {
    case DocumentValue::Kind::null:
      return "null";
    case DocumentValue::Kind::boolean:
      return "a boolean";
    case DocumentValue::Kind::number:
      return "a number";
    case DocumentValue::Kind::string:
      return "a string";
    case DocumentValue::Kind::array:
      return "a list";
    case DocumentValue::Kind::object:
      break;
  }
  return "a mapping";
}

}  // namespace gso
