// What happens to an object between its text and its storage on the real server: decoding into Go structs and
// encoding again.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "k8sclient/value/time.h"
#include "tests/sim/apiserver/quantity.h"
#include "tests/sim/apiserver/schema.h"

namespace gso::sim {
namespace {

using nlohmann::json;
using Type = Schema::Type;
using Problem = std::optional<std::string>;

// Where we are, for the messages of Go's decoder: "Go struct field Container.spec.containers.image".
struct Place {
  const std::string* struct_name;
  std::string path;
};

std::string_view short_name(const std::string& qualified) {
  return std::string_view(qualified).substr(qualified.find('.') + 1);
}

std::string go_type(const Schema& schema) {
  switch (schema.type) {
    case Type::object:
      return fmt::format("v1.{}", short_name(schema.name));
    case Type::map:
      return "map[string]" + go_type(*schema.element);
    case Type::list:
      return "[]" + go_type(*schema.element);
    case Type::int32:
      return "int32";
    case Type::int64:
      return "int64";
    case Type::number:
      return "float64";
    case Type::boolean:
      return "bool";
    case Type::quantity:
      return "resource.Quantity";
    case Type::bytes:
      return "[]uint8";
    default:
      return "string";
  }
}

std::string_view go_kind(const json& value) {
  if (value.is_object()) return "object";
  if (value.is_array()) return "array";
  if (value.is_string()) return "string";
  if (value.is_boolean()) return "bool";
  return "number";
}

Problem mismatch(const Schema& schema, const json& value, const Place& place) {
  const std::string number = value.is_number() && schema.type != Type::string ? " " + value.dump() : "";
  return fmt::format("json: cannot unmarshal {}{} into Go struct field {}.{} of type {}", go_kind(value), number,
                     short_name(*place.struct_name), place.path, go_type(schema));
}

Problem walk(const Schema& schema, json& value, const Place& place);

// The value Go writes for a field that was not given; discarded when it writes nothing.
json zero_value(const Schema::Field& field) {
  const json nothing(json::value_t::discarded);
  if (field.pointer || field.omitzero) return field.omitempty || field.omitzero ? nothing : json();
  switch (field.schema->type) {
    case Type::object: {
      json object = json::object();
      (void)walk(*field.schema, object, Place{&field.schema->name, ""});
      return object;
    }
    case Type::time:
    case Type::micro_time:
      return json();
    case Type::quantity:
      return field.omitempty ? nothing : json("0");
    case Type::int_or_string:
      return json(0);
    default:
      break;
  }
  if (field.omitempty) return nothing;
  switch (field.schema->type) {
    case Type::string:
      return json("");
    case Type::boolean:
      return json(false);
    case Type::int32:
    case Type::int64:
    case Type::number:
      return json(0);
    default:
      return json();
  }
}

bool disappears(const Schema::Field& field, const json& value) {
  if (!field.omitempty || field.pointer) return false;
  switch (field.schema->type) {
    case Type::object:
      return false;
    case Type::map:
    case Type::list:
      return value.empty();
    case Type::string:
    case Type::bytes:
      return value.is_string() && value.get_ref<const std::string&>().empty();
    case Type::boolean:
      return value == false;
    case Type::int32:
    case Type::int64:
    case Type::number:
      return value == 0;
    default:
      return false;
  }
}

Problem walk_object(const Schema& schema, json& value, const Place& place) {
  if (!value.is_object()) return mismatch(schema, value, place);
  const std::string* name = schema.name.empty() ? place.struct_name : &schema.name;
  for (auto it = value.begin(); it != value.end();) {
    const Schema::Field* field = schema.field(it.key());
    if (field == nullptr || it->is_null()) {
      it = value.erase(it);
      continue;
    }
    Place inner{name, place.path.empty() ? it.key() : place.path + "." + it.key()};
    if (auto problem = walk(*field->schema, *it, inner)) return problem;
    if (disappears(*field, *it))
      it = value.erase(it);
    else
      ++it;
  }
  for (const Schema::Field& field : schema.fields) {
    if (value.contains(field.name)) continue;
    json zero = zero_value(field);
    if (!zero.is_discarded()) value[field.name] = std::move(zero);
  }
  return std::nullopt;
}

Problem walk_integer(const Schema& schema, json& value, const Place& place) {
  if (value.is_number_float() && value.get<double>() == static_cast<double>(value.get<std::int64_t>()))
    value = value.get<std::int64_t>();
  if (!value.is_number_integer()) return mismatch(schema, value, place);
  if (schema.type == Type::int32 && (value > INT32_MAX || value < INT32_MIN)) return mismatch(schema, value, place);
  return std::nullopt;
}

Problem walk_quantity(json& value) {
  if (value.is_number()) value = value.dump();
  if (!value.is_string()) return "json: cannot unmarshal object into Go value of type resource.Quantity";
  auto canonical = canonical_quantity(value.get_ref<const std::string&>());
  if (!canonical) {
    return "quantities must match the regular expression "
           "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
  }
  value = std::move(*canonical);
  return std::nullopt;
}

Problem walk_time(const Schema& schema, json& value, const Place& place) {
  if (!value.is_string()) return mismatch(schema, value, place);
  const auto& text = value.get_ref<const std::string&>();
  const auto time = k8s::parse_rfc3339(text);
  const bool micro = schema.type == Type::micro_time;
  const char* layout = micro ? "2006-01-02T15:04:05.000000Z07:00" : "2006-01-02T15:04:05Z07:00";
  if (!time) return fmt::format("parsing time {0} as \"{1}\": cannot parse {0} as \"2006\"", json(text).dump(), layout);
  if (!micro) {
    value = k8s::format_time(*time);
    return std::nullopt;
  }
  // A MicroTime has exactly six digits, which our WallTime does not hold: the text stays.
  const auto fraction = std::min(text.find('.'), text.size());
  const auto end = std::min(text.find_first_not_of("0123456789", fraction + 1), text.size());
  if (end - fraction == 7) return std::nullopt;
  const std::string rest = text.substr(std::min(std::size_t{19}, text.size()));
  return fmt::format("parsing time {} as \"{}\": cannot parse {} as \".000000\"", json(text).dump(), layout,
                     json(rest).dump());
}

Problem walk_elements(const Schema& schema, json& value, const Place& place) {
  if (schema.type == Type::map ? !value.is_object() : !value.is_array()) return mismatch(schema, value, place);
  for (auto& element : value) {
    if (element.is_null()) {
      if (schema.element->type == Type::string) element = "";
      continue;
    }
    const bool scalar = schema.element->type == Type::string;
    if (scalar && element.is_string()) continue;
    if (auto problem = walk(*schema.element, element, place)) return problem;
  }
  return std::nullopt;
}

Problem walk(const Schema& schema, json& value, const Place& place) {
  switch (schema.type) {
    case Type::any:
      return std::nullopt;
    case Type::object:
      return walk_object(schema, value, place);
    case Type::map:
    case Type::list:
      return walk_elements(schema, value, place);
    case Type::string:
    case Type::bytes:
      return value.is_string() ? std::nullopt : mismatch(schema, value, place);
    case Type::int32:
    case Type::int64:
      return walk_integer(schema, value, place);
    case Type::number:
      return value.is_number() ? std::nullopt : mismatch(schema, value, place);
    case Type::boolean:
      return value.is_boolean() ? std::nullopt : mismatch(schema, value, place);
    case Type::int_or_string:
      return value.is_string() || value.is_number_integer() ? std::nullopt : mismatch(schema, value, place);
    case Type::quantity:
      return walk_quantity(value);
    case Type::time:
    case Type::micro_time:
      return walk_time(schema, value, place);
  }
  return std::nullopt;
}

void find_unknown(const Schema& schema, const json& value, const std::string& path, std::vector<std::string>& unknown) {
  if (value.is_object()) {
    for (const auto& [name, member] : value.items()) {
      const std::string at = path.empty() ? name : path + "." + name;
      const Schema* type = schema.member(name);
      const bool identity = schema.embedded_object && (name == "apiVersion" || name == "kind" || name == "metadata");
      if (type != nullptr)
        find_unknown(*type, member, at, unknown);
      else if (!schema.preserve_unknown && schema.type != Type::any && !identity)
        unknown.push_back(at);
    }
  } else if (value.is_array() && schema.element != nullptr) {
    for (std::size_t i = 0; i < value.size(); ++i)
      find_unknown(*schema.element, value[i], fmt::format("{}[{}]", path, i), unknown);
  }
}

}  // namespace

std::vector<std::string> unknown_fields(const Schema& schema, const json& value) {
  std::vector<std::string> unknown;
  find_unknown(schema, value, "", unknown);
  std::sort(unknown.begin(), unknown.end());
  return unknown;
}

std::optional<std::string> normalize(const Schema& schema, json& value) {
  return walk(schema, value, Place{&schema.name, ""});
}

}  // namespace gso::sim
