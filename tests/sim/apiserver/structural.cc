// Reading, pruning and defaulting of structural schemas.
#include "tests/sim/apiserver/structural.h"

#include <algorithm>

namespace gso::sim {
namespace {

using nlohmann::json;
using Type = Schema::Type;

Type type_of(const json& open_api) {
  if (open_api.value("x-kubernetes-int-or-string", false)) return Type::int_or_string;
  const std::string type = open_api.value("type", "");
  if (type == "object") return open_api.contains("properties") ? Type::object : Type::map;
  if (type == "array") return Type::list;
  if (type == "string") return Type::string;
  if (type == "integer") return Type::int64;
  if (type == "number") return Type::number;
  if (type == "boolean") return Type::boolean;
  return open_api.contains("properties") ? Type::object : Type::any;
}

template <class T>
void read_optional(const json& from, const char* name, std::optional<T>& to) {
  if (auto it = from.find(name); it != from.end() && it->is_number()) to = it->get<T>();
}

Schema* read_node(const json& open_api, SchemaArena& arena);

std::vector<const Schema*> read_nodes(const json& open_api, const char* name, SchemaArena& arena) {
  std::vector<const Schema*> nodes;
  if (auto it = open_api.find(name); it != open_api.end() && it->is_array())
    for (const auto& item : *it) nodes.push_back(read_node(item, arena));
  return nodes;
}

std::shared_ptr<const Constraints> read_constraints(const json& open_api, SchemaArena& arena) {
  auto c = std::make_shared<Constraints>();
  if (open_api.contains("default")) c->default_value = open_api["default"];
  c->enumeration = open_api.value("enum", json());
  read_optional(open_api, "minimum", c->minimum);
  read_optional(open_api, "maximum", c->maximum);
  c->exclusive_minimum = open_api.value("exclusiveMinimum", false);
  c->exclusive_maximum = open_api.value("exclusiveMaximum", false);
  read_optional(open_api, "multipleOf", c->multiple_of);
  read_optional(open_api, "minLength", c->min_length);
  read_optional(open_api, "maxLength", c->max_length);
  read_optional(open_api, "minItems", c->min_items);
  read_optional(open_api, "maxItems", c->max_items);
  read_optional(open_api, "minProperties", c->min_properties);
  read_optional(open_api, "maxProperties", c->max_properties);
  c->unique_items = open_api.value("uniqueItems", false);
  c->pattern = open_api.value("pattern", "");
  c->format = open_api.value("format", "");
  c->required = open_api.value("required", std::vector<std::string>());
  c->all_of = read_nodes(open_api, "allOf", arena);
  c->any_of = read_nodes(open_api, "anyOf", arena);
  c->one_of = read_nodes(open_api, "oneOf", arena);
  if (open_api.contains("not")) c->negated = read_node(open_api["not"], arena);
  const json rules = open_api.value("x-kubernetes-validations", json::array());
  for (const auto& rule : rules) {
    c->rules.push_back({rule.value("rule", ""), rule.value("message", ""), rule.value("reason", "FieldValueInvalid"),
                        rule.value("fieldPath", "")});
  }
  return c;
}

Schema* read_node(const json& open_api, SchemaArena& arena) {
  Schema* node = &arena.emplace_back();
  node->type = type_of(open_api);
  node->nullable = open_api.value("nullable", false);
  node->preserve_unknown = open_api.value("x-kubernetes-preserve-unknown-fields", false);
  node->embedded_object = open_api.value("x-kubernetes-embedded-resource", false);
  node->description = open_api.value("description", "");
  node->atomic = open_api.value("x-kubernetes-map-type", "") == "atomic";
  const std::string list_type = open_api.value("x-kubernetes-list-type", "atomic");
  node->list_type = list_type == "map"   ? Schema::ListType::map
                    : list_type == "set" ? Schema::ListType::set
                                         : Schema::ListType::atomic;
  node->list_keys = open_api.value("x-kubernetes-list-map-keys", std::vector<std::string>());
  std::sort(node->list_keys.begin(), node->list_keys.end());
  const auto required = open_api.value("required", std::vector<std::string>());
  if (auto it = open_api.find("properties"); it != open_api.end() && it->is_object()) {
    for (const auto& [name, property] : it->items()) {  // In order of names, as Schema wants them.
      Schema::Field field;
      field.name = name;
      field.schema = read_node(property, arena);
      field.required = std::find(required.begin(), required.end(), name) != required.end();
      node->fields.push_back(std::move(field));
    }
  }
  if (auto it = open_api.find("additionalProperties"); it != open_api.end())
    node->element = it->is_object() ? read_node(*it, arena) : read_node(json::object(), arena);
  if (auto it = open_api.find("items"); it != open_api.end() && it->is_object()) node->element = read_node(*it, arena);
  if (node->type == Type::map && node->element == nullptr && !node->preserve_unknown) node->type = Type::object;
  node->constraints = read_constraints(open_api, arena);
  return node;
}

bool unknown_stays(const Schema& schema, const std::string& name, bool embedded) {
  return schema.preserve_unknown || schema.type == Type::any ||
         (embedded && (name == "apiVersion" || name == "kind" || name == "metadata"));
}

void prune(const Schema& schema, json& value) {
  if (value.is_object()) {
    for (auto it = value.begin(); it != value.end();) {
      const Schema* member = schema.member(it.key());
      if (member != nullptr) {
        prune(*member, *it);
        ++it;
      } else {
        it = unknown_stays(schema, it.key(), schema.embedded_object) ? std::next(it) : value.erase(it);
      }
    }
  } else if (value.is_array() && schema.element != nullptr) {
    for (auto& item : value) prune(*schema.element, item);
  }
}

// Nulls go where the type does not allow them and a default exists; then defaults are filled in.
void fill_defaults(const Schema& schema, json& value) {
  if (value.is_object()) {
    for (const Schema::Field& field : schema.fields) {
      const json& fallback = field.schema->constraints->default_value;
      auto it = value.find(field.name);
      const bool absent = it == value.end() || (it->is_null() && !field.schema->nullable);
      if (absent && !fallback.is_discarded()) value[field.name] = fallback;
      it = value.find(field.name);
      if (it != value.end()) fill_defaults(*field.schema, *it);
    }
    if (schema.element != nullptr) {
      for (auto& [name, member] : value.items())
        if (schema.field(name) == nullptr) fill_defaults(*schema.element, member);
    }
  } else if (value.is_array() && schema.element != nullptr) {
    for (auto& item : value) fill_defaults(*schema.element, item);
  }
}

void drop_nulls(const Schema& schema, json& value) {
  if (!value.is_object()) {
    if (value.is_array() && schema.element != nullptr)
      for (auto& item : value) drop_nulls(*schema.element, item);
    return;
  }
  for (auto it = value.begin(); it != value.end();) {
    const Schema* member = schema.member(it.key());
    if (it->is_null() && member != nullptr && !member->nullable) {
      it = value.erase(it);
      continue;
    }
    if (member != nullptr) drop_nulls(*member, *it);
    ++it;
  }
}

}  // namespace

const Schema* read_structural_schema(const json& open_api, SchemaArena& arena) {
  Schema* root = read_node(open_api, arena);
  const auto set_field = [&](const char* name, const Schema* schema) {
    std::erase_if(root->fields, [&](const Schema::Field& f) { return f.name == name; });
    Schema::Field field;
    field.name = name;
    field.schema = schema;
    root->fields.push_back(field);
  };
  const auto unconstrained = [&](Schema copy) {
    copy.constraints = std::make_shared<Constraints>();
    arena.push_back(std::move(copy));
    return &arena.back();
  };
  set_field("apiVersion", unconstrained(*builtin_schema("string")));
  set_field("kind", unconstrained(*builtin_schema("string")));
  set_field("metadata", unconstrained(*builtin_schema("meta.ObjectMeta")));
  std::sort(root->fields.begin(), root->fields.end(),
            [](const Schema::Field& a, const Schema::Field& b) { return a.name < b.name; });
  if (root->type != Type::any) root->type = Type::object;
  return root;
}

std::optional<std::string> normalize_custom(const Resource& resource, json& object) {
  if (auto metadata = object.find("metadata"); metadata != object.end()) {
    if (auto problem = normalize(*builtin_schema("meta.ObjectMeta"), *metadata)) return problem;
  }
  if (resource.schema == nullptr) return std::nullopt;
  json metadata = std::move(object["metadata"]);
  object.erase("metadata");
  if (resource.pruning) prune(*resource.schema, object);
  fill_defaults(*resource.schema, object);
  drop_nulls(*resource.schema, object);
  object["metadata"] = std::move(metadata);
  return std::nullopt;
}

}  // namespace gso::sim
