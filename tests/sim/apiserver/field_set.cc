// Field sets and typed values, after structured-merge-diff's rules.
#include "tests/sim/apiserver/field_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace gso::sim {
namespace {

using nlohmann::json;
using Type = Schema::Type;

bool associative(const Schema* schema) {
  return schema != nullptr && schema->type == Type::list && schema->list_type != Schema::ListType::atomic;
}

// Objects and maps are walked into unless they are atomic; of unknown type, objects are, lists are not.
bool granular(const Schema* schema, const json& value) {
  if (value.is_object()) return schema == nullptr || !schema->atomic;
  return value.is_array() && associative(schema);
}

std::string item_element(const Schema& list, const json& item) {
  if (list.list_type == Schema::ListType::set || !item.is_object()) return "v:" + item.dump();
  json key = json::object();
  for (const std::string& name : list.list_keys)
    if (item.contains(name))
      key[name] = item[name];
    else if (name == "protocol")
      key[name] = "TCP";  // The one key with a default, of container and service ports.
  return "k:" + key.dump();
}

const Schema* member_schema(const Schema* schema, const std::string& name) {
  return schema == nullptr ? nullptr : schema->member(name);
}

// Calls visit(element, schema, value) for each member of a granular value.
template <class Visit>
void for_each_member(const Schema* schema, const json& value, Visit visit) {
  if (value.is_object())
    for (const auto& [name, member] : value.items()) visit("f:" + name, member_schema(schema, name), member);
  else
    for (const auto& item : value) visit(item_element(*schema, item), schema->element, item);
}

void add_leaves(const Schema* schema, const json& value, bool item, FieldSet& set) {
  if (!granular(schema, value) || value.empty()) {
    set.member = true;
    return;
  }
  set.member = item;
  for_each_member(schema, value, [&](const std::string& element, const Schema* type, const json& member) {
    add_leaves(type, member, !element.starts_with("f:"), set.children[element]);
  });
}

// Everything in `value`, containers included: what a creation adds or a removal takes.
void add_all(const Schema* schema, const json& value, FieldSet& set) {
  set.member = true;
  if (!granular(schema, value)) return;
  for_each_member(schema, value, [&](const std::string& element, const Schema* type, const json& member) {
    add_all(type, member, set.children[element]);
  });
}

struct Member {
  const Schema* schema = nullptr;
  const json* value = nullptr;
};

std::map<std::string, Member> members(const Schema* schema, const json& value) {
  std::map<std::string, Member> all;
  for_each_member(schema, value, [&](const std::string& element, const Schema* type, const json& member) {
    all[element] = {type, &member};
  });
  return all;
}

void compare(const Schema* schema, const json& before, const json& after, FieldSet& changed, FieldSet& removed) {
  if (before == after) return;
  if (before.is_null() && granular(schema, after)) {  // Go's empty list: its members are new, it is not.
    for_each_member(schema, after, [&](const std::string& element, const Schema* type, const json& member) {
      add_all(type, member, changed.children[element]);
    });
    return;
  }
  const bool walk = granular(schema, before) && granular(schema, after) && before.type() == after.type() &&
                    !(before.empty() && after.empty());
  if (!walk) {
    changed.member = true;
    return;
  }
  const auto old_members = members(schema, before);
  const auto new_members = members(schema, after);
  for (const auto& [element, now] : new_members) {
    auto was = old_members.find(element);
    FieldSet inner;
    FieldSet inner_removed;
    if (was == old_members.end())
      add_all(now.schema, *now.value, inner);
    else
      compare(now.schema, *was->second.value, *now.value, inner, inner_removed);
    if (!inner.empty()) changed.children[element] = std::move(inner);
    if (!inner_removed.empty()) removed.children[element] = std::move(inner_removed);
  }
  for (const auto& [element, was] : old_members)
    if (!new_members.contains(element)) add_all(was.schema, *was.value, removed.children[element]);
}

std::string printed(const std::string& element) {
  const std::string body = element.substr(2);
  if (element.starts_with("f:")) return "." + body;
  if (element.starts_with("v:")) return "[=" + body + "]";
  std::string keys;
  const json key = json::parse(body, nullptr, false);
  for (const auto& [name, value] : key.items())
    keys += fmt::format("{}{}={}", keys.empty() ? "" : ",", name, value.dump());
  return "[" + keys + "]";
}

void collect_paths(const FieldSet& set, const std::string& prefix, std::vector<std::string>& out) {
  for (const auto& [element, child] : set.children)  // Members of a level come before what is below them.
    if (child.member) out.push_back(prefix + printed(element));
  for (const auto& [element, child] : set.children) collect_paths(child, prefix + printed(element), out);
}

json merge_lists(const Schema& schema, const json& live, const json& config) {
  std::map<std::string, const json*> live_items;
  std::map<std::string, const json*> config_items;
  for (const auto& item : live) live_items.emplace(item_element(schema, item), &item);
  for (const auto& item : config) config_items.emplace(item_element(schema, item), &item);
  json merged = json::array();
  std::map<std::string, bool> done;
  auto next_live = live.begin();
  const auto emit_live_only = [&] {
    for (; next_live != live.end(); ++next_live) {
      const std::string element = item_element(schema, *next_live);
      if (config_items.contains(element)) {
        if (!done[element]) return;  // The configuration decides where its items stand.
      } else {
        merged.push_back(*next_live);
      }
    }
  };
  for (const auto& item : config) {
    emit_live_only();
    const std::string element = item_element(schema, item);
    auto existing = live_items.find(element);
    merged.push_back(existing == live_items.end() ? item : merge_fields(schema.element, *existing->second, item));
    done[element] = true;
  }
  emit_live_only();
  return merged;
}

std::string_view expected_type(Type type) {
  switch (type) {
    case Type::object:
    case Type::map:
      return "map";
    case Type::list:
      return "list";
    case Type::boolean:
      return "boolean";
    case Type::int32:
    case Type::int64:
      return "numeric (int or float)";
    case Type::number:
      return "numeric (int or float)";
    default:
      return "string";
  }
}

bool fits(Type type, const json& value) {
  switch (type) {
    case Type::any:
      return true;
    case Type::object:
    case Type::map:
      return value.is_object();
    case Type::list:
      return value.is_array();
    case Type::boolean:
      return value.is_boolean();
    case Type::int32:
    case Type::int64:
    case Type::number:
      return value.is_number();
    case Type::int_or_string:
    case Type::quantity:
      return value.is_string() || value.is_number();
    default:
      return value.is_string();
  }
}

void check_types(const Schema* schema, const json& value, const std::string& path, std::vector<std::string>& errors) {
  if (schema == nullptr || value.is_null()) return;
  if (!fits(schema->type, value)) {
    errors.push_back(fmt::format("{}: expected {}, got &value.valueUnstructured{{Value:{}}}", path,
                                 expected_type(schema->type), value.dump()));
    return;
  }
  if (value.is_object()) {
    for (const auto& [name, member] : value.items()) {
      const Schema* type = schema->member(name);
      if (type == nullptr && schema->type == Type::object && !schema->preserve_unknown)
        errors.push_back(fmt::format("{}.{}: field not declared in schema", path, name));
      else
        check_types(type, member, path + "." + name, errors);
    }
  } else if (value.is_array()) {
    std::map<std::string, int> seen;
    for (std::size_t i = 0; i < value.size(); ++i) {
      const bool keyed = associative(schema);
      const std::string element = keyed ? item_element(*schema, value[i]) : "";
      if (keyed && seen[element]++ > 0)
        errors.push_back(fmt::format("{}: duplicate entries for key {}", path, printed(element)));
      check_types(schema->element, value[i], keyed ? path + printed(element) : fmt::format("{}[{}]", path, i), errors);
    }
  }
}

// Whether this node of FieldsV1, which is not the root, is a member by itself.
bool is_member(const json& node) {
  return node.is_object() && (node.empty() || node.contains("."));
}

}  // namespace

FieldSet FieldSet::from_json(const json& fields_v1) {
  FieldSet set;
  if (!fields_v1.is_object()) return set;
  for (const auto& [element, child] : fields_v1.items()) {
    if (element == ".") {
      set.member = true;
    } else {
      FieldSet inner = from_json(child);
      if (child.is_object() && child.empty()) inner.member = true;
      set.children[element] = std::move(inner);
    }
  }
  return set;
}

json FieldSet::to_json() const {
  json fields = json::object();
  if (member && !children.empty()) fields["."] = json::object();
  for (const auto& [element, child] : children)
    if (!child.empty()) fields[element] = child.to_json();
  return fields;
}

bool overlaps(const json& fields_v1, const FieldSet& set) {
  if (set.member && is_member(fields_v1)) return true;
  return std::ranges::any_of(set.children, [&](const auto& child) {
    const auto below = fields_v1.find(child.first);
    return below != fields_v1.end() && overlaps(*below, child.second);
  });
}

bool covers(const json& fields_v1, const FieldSet& set) {
  if (set.member && !is_member(fields_v1)) return false;
  return std::ranges::all_of(set.children, [&](const auto& child) {
    const auto below = fields_v1.find(child.first);
    return below != fields_v1.end() && covers(*below, child.second);
  });
}

std::vector<std::string> FieldSet::paths() const {
  std::vector<std::string> out;
  collect_paths(*this, "", out);
  return out;
}

FieldSet unite(FieldSet a, const FieldSet& b) {
  a.member |= b.member;
  for (const auto& [element, child] : b.children) a.children[element] = unite(std::move(a.children[element]), child);
  return a;
}

FieldSet subtract(const FieldSet& a, const FieldSet& b) {
  FieldSet result;
  result.member = a.member && !b.member;
  for (const auto& [element, child] : a.children) {
    auto it = b.children.find(element);
    FieldSet rest = it == b.children.end() ? child : subtract(child, it->second);
    if (!rest.empty()) result.children[element] = std::move(rest);
  }
  return result;
}

FieldSet intersect(const FieldSet& a, const FieldSet& b) {
  FieldSet result;
  result.member = a.member && b.member;
  for (const auto& [element, child] : a.children) {
    auto it = b.children.find(element);
    if (it == b.children.end()) continue;
    FieldSet both = intersect(child, it->second);
    if (!both.empty()) result.children[element] = std::move(both);
  }
  return result;
}

FieldSet subtract_covered(const FieldSet& a, const FieldSet& b) {
  FieldSet result;
  result.member = a.member && b.empty();
  for (const auto& [element, child] : a.children) {
    auto it = b.children.find(element);
    FieldSet rest = it == b.children.end() ? child : subtract_covered(child, it->second);
    if (!rest.empty()) result.children[element] = std::move(rest);
  }
  return result;
}

FieldSet leaves(const Schema* schema, const json& value) {
  FieldSet set;
  add_leaves(schema, value, false, set);
  return set;
}

FieldChanges compare_fields(const Schema* schema, const json& before, const json& after) {
  FieldChanges changes;
  compare(schema, before, after, changes.added_or_modified, changes.removed);
  return changes;
}

json merge_fields(const Schema* schema, const json& live, const json& config) {
  if (live.is_object() && config.is_object() && granular(schema, config)) {
    json merged = live;
    for (const auto& [name, value] : config.items()) {
      auto it = merged.find(name);
      if (it == merged.end())
        merged[name] = value;
      else
        *it = merge_fields(member_schema(schema, name), *it, value);
    }
    return merged;
  }
  if (live.is_array() && config.is_array() && associative(schema)) return merge_lists(*schema, live, config);
  return config;
}

void remove_fields(const Schema* schema, json& value, const FieldSet& fields) {
  if (value.is_object()) {
    for (auto it = value.begin(); it != value.end();) {
      auto child = fields.children.find("f:" + it.key());
      if (child == fields.children.end()) {
        ++it;
        continue;
      }
      const bool had_members = it->is_structured() && !it->empty();
      if (!child->second.member) remove_fields(member_schema(schema, it.key()), *it, child->second);
      const bool gone = child->second.member || (had_members && it->empty());
      it = gone ? value.erase(it) : std::next(it);
    }
  } else if (value.is_array() && associative(schema)) {
    json kept = json::array();
    for (auto& item : value) {
      auto child = fields.children.find(item_element(*schema, item));
      if (child != fields.children.end() && child->second.member) continue;
      if (child != fields.children.end()) remove_fields(schema->element, item, child->second);
      kept.push_back(std::move(item));
    }
    value = std::move(kept);
  }
}

std::vector<std::string> typing_errors(const Schema* schema, const json& value) {
  std::vector<std::string> errors;
  check_types(schema, value, "", errors);
  return errors;
}

}  // namespace gso::sim
