// Parses the tables of built-in types into Schema nodes, on first use.
#include "tests/sim/apiserver/schema.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <stdexcept>

#include "tests/sim/apiserver/builtin_types.h"

namespace gso::sim {
namespace {

using Type = Schema::Type;

const std::map<std::string, Type, std::less<>> kScalars = {{"any", Type::any},
                                                           {"string", Type::string},
                                                           {"int32", Type::int32},
                                                           {"int64", Type::int64},
                                                           {"number", Type::number},
                                                           {"bool", Type::boolean},
                                                           {"quantity", Type::quantity},
                                                           {"time", Type::time},
                                                           {"micro", Type::micro_time},
                                                           {"bytes", Type::bytes},
                                                           {"intorstring", Type::int_or_string}};

std::vector<std::string> split_text(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

// All built-in types. Nodes of named types are filled after they are registered, so that types may refer to each
// other; a use with flags of its own is a copy made once everything is filled.
class BuiltinTypes {
 public:
  BuiltinTypes() {
    read_table(kCoreTypes);
    read_table(kGroupTypes);
    for (auto& [name, declaration] : declarations_) named(name);
    for (auto& [copy, original] : copies_) {
      copy->fields = original->fields;
      copy->type = original->type;
    }
  }

  [[nodiscard]] const Schema* find(std::string_view name) const {
    auto it = named_.find(name);
    return it == named_.end() ? nullptr : it->second;
  }

 private:
  void read_table(const char* table) {
    std::istringstream in(table);
    std::string* current = nullptr;
    for (std::string line; std::getline(in, line);) {
      if (line.empty()) continue;
      if (line.front() == ' ') {
        *current += line;
        continue;
      }
      const auto space = line.find(' ');
      std::string name = line.substr(0, space);
      if (name.ends_with('!')) {
        name.pop_back();
        atomic_.insert(name);
      }
      current = &declarations_[name];
      *current = space == std::string::npos ? "" : line.substr(space + 1);
    }
  }

  Schema* node() {
    arena_.emplace_back();
    return &arena_.back();
  }

  const Schema* named(const std::string& name) {
    if (auto it = named_.find(name); it != named_.end()) return it->second;
    if (auto it = kScalars.find(name); it != kScalars.end()) {
      Schema* scalar = node();
      scalar->type = it->second;
      scalar->atomic = scalar->type == Type::any;  // RawExtension and the like are owned as a whole.
      named_[name] = scalar;
      return scalar;
    }
    auto declaration = declarations_.find(name);
    if (declaration == declarations_.end()) throw std::logic_error("unknown built-in type " + name);
    Schema* object = node();
    object->type = Type::object;
    object->name = name;
    object->atomic = atomic_.contains(name);
    named_[name] = object;
    std::istringstream in(declaration->second);
    for (std::string token; in >> token;) object->fields.push_back(parse_field(token));
    std::sort(object->fields.begin(), object->fields.end(),
              [](const Schema::Field& a, const Schema::Field& b) { return a.name < b.name; });
    return object;
  }

  Schema::Field parse_field(const std::string& token) {
    const auto colon = token.find(':');
    const auto end = std::min(token.find_first_of("*?~+@%&!", colon), token.size());
    Schema::Field field;
    field.name = token.substr(0, colon);
    std::string use = token.substr(colon + 1, end - colon - 1);
    for (std::size_t i = end; i < token.size(); ++i)
      if (token[i] == '*')
        field.pointer = true;
      else if (token[i] == '?')
        field.omitempty = true;
      else if (token[i] == '~')
        field.omitzero = true;
      else if (token[i] == '+')
        field.required = true;
      else
        use += token[i];
    field.schema = used(use);
    return field;
  }

  // The node of "[]core.Container@name%name", shared by equal uses.
  const Schema* used(const std::string& use) {
    if (auto it = uses_.find(use); it != uses_.end()) return it->second;
    const auto end = std::min(use.find_first_of("@%&!"), use.size());
    const std::string type = use.substr(0, end);
    if (end == use.size() && !type.starts_with("[]") && !type.starts_with("{}")) return named(type);
    Schema* result = node();
    uses_[use] = result;
    if (type.starts_with("[]") || type.starts_with("{}")) {
      result->type = type.front() == '[' ? Type::list : Type::map;
      result->element = used(type.substr(2));
    } else {
      const Schema* original = named(type);
      result->type = original->type;
      result->name = original->name;
      result->atomic = original->atomic;
      copies_.emplace_back(result, original);
    }
    read_flags(use.substr(end), *result);
    return result;
  }

  static void read_flags(const std::string& flags, Schema& schema) {
    for (std::size_t i = 0; i < flags.size();) {
      const auto end = std::min(flags.find_first_of("@%&!", i + 1), flags.size());
      const std::string value = flags.substr(i + 1, end - i - 1);
      switch (flags[i]) {
        case '@':
          schema.list_type = value == "=" ? Schema::ListType::set : Schema::ListType::map;
          if (value != "=") schema.list_keys = split_text(value, ',');
          break;
        case '%':
          schema.merge = true;
          schema.merge_key = value;
          break;
        case '&':
          schema.retain_keys = true;
          break;
        default:
          schema.atomic = true;
      }
      i = end;
    }
  }

  SchemaArena arena_;
  std::map<std::string, std::string, std::less<>> declarations_;
  std::set<std::string> atomic_;
  std::map<std::string, const Schema*, std::less<>> named_;
  std::map<std::string, const Schema*> uses_;
  std::vector<std::pair<Schema*, const Schema*>> copies_;
};

}  // namespace

const Schema::Field* Schema::field(std::string_view field_name) const {
  auto it = std::lower_bound(fields.begin(), fields.end(), field_name,
                             [](const Field& f, std::string_view wanted) { return f.name < wanted; });
  return it != fields.end() && it->name == field_name ? &*it : nullptr;
}

const Schema* Schema::member(std::string_view member_name) const {
  if (const Field* found = field(member_name)) return found->schema;
  return type == Type::list ? nullptr : element;
}

const Schema* builtin_schema(std::string_view name) {
  static const BuiltinTypes types;
  return types.find(name);
}

}  // namespace gso::sim
