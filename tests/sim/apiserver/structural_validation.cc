// Validation of custom resources, with the messages of kube-openapi's validator.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <regex>
#include <set>

#include "k8sclient/value/time.h"
#include "tests/sim/apiserver/cel.h"
#include "tests/sim/apiserver/field_set.h"
#include "tests/sim/apiserver/structural.h"

namespace gso::sim {
namespace {

using nlohmann::json;
using Type = Schema::Type;

std::string_view type_name(Type type) {
  switch (type) {
    case Type::list:
      return "array";
    case Type::string:
      return "string";
    case Type::int64:
      return "integer";
    case Type::number:
      return "number";
    case Type::boolean:
      return "boolean";
    default:
      return "object";
  }
}

std::string_view json_type(const json& value) {
  if (value.is_object()) return "object";
  if (value.is_array()) return "array";
  if (value.is_string()) return "string";
  if (value.is_boolean()) return "boolean";
  if (value.is_null()) return "null";
  return value.is_number_integer() ? "integer" : "number";
}

bool has_type(const Schema& schema, const json& value) {
  if (value.is_null()) return schema.nullable;
  switch (schema.type) {
    case Type::any:
      return true;
    case Type::object:
    case Type::map:
      return value.is_object();
    case Type::list:
      return value.is_array();
    case Type::string:
      return value.is_string();
    case Type::int64:
      return value.is_number_integer() || (value.is_number() && std::floor(value.get<double>()) == value.get<double>());
    case Type::number:
      return value.is_number();
    case Type::boolean:
      return value.is_boolean();
    case Type::int_or_string:
      return value.is_string() || value.is_number_integer();
    default:
      return true;
  }
}

class Validator {
 public:
  // Texts name paths without the prefix.
  explicit Validator(FieldErrors& errors, std::string_view prefix = "") : errors_(errors), prefix_(prefix) {}

  void check(const Schema& schema, const json& value, const std::string& path) {
    if (!has_type(schema, value)) {
      const std::string format = schema.constraints == nullptr ? "" : schema.constraints->format;
      if (schema.type == Type::int64 && value.is_number() && !format.empty()) {
        errors_.push_back(invalid_value(
            "<nil>", "",
            fmt::format("Checked value must be of type integer with format {} in {}", format, shown(path))));
        errors_.push_back({FieldError::Type::type_invalid, path, "\"float64\"",
                           fmt::format("{} in body must be of type {}: \"float64\"", shown(path), format)});
        return;
      }
      errors_.push_back({FieldError::Type::type_invalid, path, json(json_type(value)).dump(),
                         fmt::format("{} in body must be of type {}: {}", shown(path), type_name(schema.type),
                                     json(json_type(value)).dump())});
      return;
    }
    if (value.is_null()) return;
    if (schema.constraints != nullptr) check_constraints(*schema.constraints, value, path);
    if (value.is_object()) {
      for (const auto& [name, member] : value.items()) {
        if (path.empty() && name == "metadata") continue;
        const Schema* type = schema.member(name);
        if (type != nullptr) check(*type, member, path.empty() ? name : path + "." + name);
      }
    } else if (value.is_array() && schema.element != nullptr) {
      check_list_keys(schema, value, path);
      for (std::size_t i = 0; i < value.size(); ++i) check(*schema.element, value[i], fmt::format("{}[{}]", path, i));
    }
  }

 private:
  [[nodiscard]] std::string shown(const std::string& path) const {
    return path.starts_with(prefix_) ? path.substr(prefix_.size()) : path;
  }

  void invalid(const std::string& path, const json& value, const std::string& what) {
    errors_.push_back(invalid_value(path, value, fmt::format("{} in body {}", shown(path), what)));
  }

  void check_constraints(const Constraints& c, const json& value, const std::string& path) {
    if (value.is_number()) check_number(c, value, path);
    if (value.is_string()) check_string(c, value, path);
    if (value.is_array()) check_size(c.min_items, c.max_items, value.size(), value, path, "items");
    if (value.is_object()) check_object(c, value, path);
    if (c.enumeration.is_array() &&
        std::find(c.enumeration.begin(), c.enumeration.end(), value) == c.enumeration.end()) {
      std::vector<std::string> supported;
      for (const auto& option : c.enumeration) supported.push_back(option.dump());
      errors_.push_back({FieldError::Type::not_supported, path, value.dump(),
                         fmt::format("supported values: {}", fmt::join(supported, ", "))});
    }
    check_combinations(c, value, path);
  }

  void check_number(const Constraints& c, const json& value, const std::string& path) {
    const double number = value.get<double>();
    if (c.minimum && (c.exclusive_minimum ? number <= *c.minimum : number < *c.minimum)) {
      invalid(path, value,
              fmt::format("should be greater than {}{}", c.exclusive_minimum ? "" : "or equal to ", *c.minimum));
    }
    if (c.maximum && (c.exclusive_maximum ? number >= *c.maximum : number > *c.maximum)) {
      invalid(path, value,
              fmt::format("should be less than {}{}", c.exclusive_maximum ? "" : "or equal to ", *c.maximum));
    }
    if (c.multiple_of && std::fmod(number, *c.multiple_of) != 0.0)
      invalid(path, value, fmt::format("should be a multiple of {}", *c.multiple_of));
  }

  void check_string(const Constraints& c, const json& value, const std::string& path) {
    const auto& text = value.get_ref<const std::string&>();
    const auto is_start = [](char b) { return (static_cast<unsigned char>(b) & 0xC0U) != 0x80U; };
    const auto length = static_cast<std::size_t>(std::count_if(text.begin(), text.end(), is_start));
    // Only the first of these is reported.
    if (c.max_length && length > *c.max_length) {
      errors_.push_back(
          {FieldError::Type::too_long, path, "", fmt::format("may not be more than {} bytes", *c.max_length)});
    } else if (c.min_length && length < *c.min_length) {
      invalid(path, value, fmt::format("should be at least {} chars long", *c.min_length));
    } else if (!c.pattern.empty() && text.size() < 100'000 &&
               !std::regex_search(text, std::regex(c.pattern, std::regex::ECMAScript))) {
      invalid(path, value, fmt::format("should match '{}'", c.pattern));
    }
    if (c.format == "date-time" && !k8s::parse_rfc3339(text))
      invalid(path, value, fmt::format("must be of type date-time: {}", value.dump()));
  }

  void check_size(std::optional<std::size_t> least, std::optional<std::size_t> most, std::size_t size,
                  const json& value, const std::string& path, const char* what) {
    if (least && size < *least) invalid(path, value, fmt::format("should have at least {} {}", *least, what));
    if (most && size > *most) {
      errors_.push_back({FieldError::Type::too_many, path, std::to_string(size),
                         fmt::format("must have at most {} {}", *most, what)});
    }
  }

  void check_object(const Constraints& c, const json& value, const std::string& path) {
    for (const std::string& name : c.required)
      if (!value.contains(name)) errors_.push_back(required_value(path.empty() ? name : path + "." + name));
    check_size(c.min_properties, c.max_properties, value.size(), value, path, "properties");
  }

  void check_list_keys(const Schema& schema, const json& list, const std::string& path) {
    if (schema.list_type == Schema::ListType::atomic) return;
    std::set<std::string> seen;
    for (std::size_t i = 0; i < list.size(); ++i) {
      json key = list[i];
      if (schema.list_type == Schema::ListType::map && list[i].is_object()) {
        key = json::object();
        for (const auto& name : schema.list_keys) key[name] = list[i].value(name, json());
      }
      if (!seen.insert(key.dump()).second) errors_.push_back(duplicate_value(fmt::format("{}[{}]", path, i), key));
    }
  }

  // A schema of a combination, with its errors thrown away.
  static bool passes(const Schema& schema, const json& value) {
    FieldErrors ignored;
    Validator(ignored).check(schema, value, "x");
    return ignored.empty();
  }

  void check_combinations(const Constraints& c, const json& value, const std::string& path) {
    for (const Schema* s : c.all_of) check(*s, value, path);
    const auto passing = [&](const std::vector<const Schema*>& options) {
      return std::count_if(options.begin(), options.end(), [&](const Schema* s) { return passes(*s, value); });
    };
    if (!c.any_of.empty() && passing(c.any_of) == 0) invalid(path, value, "must validate at least one schema (anyOf)");
    if (!c.one_of.empty() && passing(c.one_of) != 1) {
      invalid(
          path, value,
          fmt::format("must validate one and only one schema (oneOf). Found {} valid alternatives", passing(c.one_of)));
    }
    if (c.negated != nullptr && passes(*c.negated, value)) invalid(path, value, "must not validate the schema (not)");
  }

  FieldErrors& errors_;
  std::string prefix_;
};

// CEL rules, after everything else holds. Old values are matched by field, and by key in lists of type map.
void check_rules(const Schema& schema, const json& value, const json* old, const std::string& path,
                 FieldErrors& errors) {
  if (schema.constraints != nullptr) {
    for (const Constraints::Rule& rule : schema.constraints->rules) {
      const CelResult result = evaluate_cel(rule.rule, value, old);
      if (result != CelResult::violated) continue;
      const std::string text = rule.message.empty() ? "failed rule: " + rule.rule : rule.message;
      const std::string at =
          (path.empty() && !rule.field_path.empty() ? rule.field_path.substr(1) : path + rule.field_path);
      if (rule.reason == "FieldValueForbidden")
        errors.push_back(forbidden_value(at, text));
      else if (rule.reason == "FieldValueRequired")
        errors.push_back(required_value(at, text));
      else if (value.is_structured())
        errors.push_back({FieldError::Type::invalid, at, "", text});
      else
        errors.push_back(invalid_value(at, value, text));
    }
  }
  if (value.is_object()) {
    for (const auto& [name, member] : value.items()) {
      const Schema* type = schema.member(name);
      if (type == nullptr) continue;
      const json* before = old != nullptr && old->is_object() && old->contains(name) ? &(*old)[name] : nullptr;
      check_rules(*type, member, before, path.empty() ? name : path + "." + name, errors);
    }
  } else if (value.is_array() && schema.element != nullptr) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      const json* before = nullptr;
      if (schema.list_type == Schema::ListType::map && old != nullptr && old->is_array()) {
        for (const auto& candidate : *old) {
          const bool same = std::all_of(schema.list_keys.begin(), schema.list_keys.end(), [&](const std::string& key) {
            return candidate.value(key, json()) == value[i].value(key, json());
          });
          if (same) before = &candidate;
        }
      }
      check_rules(*schema.element, value[i], before, fmt::format("{}[{}]", path, i), errors);
    }
  }
}

}  // namespace

namespace {

bool has_rules(const Schema& schema) {
  if (schema.constraints != nullptr && !schema.constraints->rules.empty()) return true;
  if (schema.element != nullptr && has_rules(*schema.element)) return true;
  return std::any_of(schema.fields.begin(), schema.fields.end(),
                     [](const Schema::Field& f) { return f.name != "metadata" && has_rules(*f.schema); });
}

bool blocks_rules(const FieldError& error) {
  switch (error.type) {
    case FieldError::Type::not_supported:
    case FieldError::Type::required:
    case FieldError::Type::too_long:
    case FieldError::Type::too_many:
    case FieldError::Type::type_invalid:
      return true;
    default:
      return false;
  }
}

}  // namespace

void validate_custom(const Resource& resource, const json& object, const json* old, bool status_only,
                     FieldErrors& errors) {
  if (resource.schema == nullptr) return;
  if (!status_only)
    Validator(errors).check(*resource.schema, object, "");
  else if (const Schema* status = resource.schema->member("status"); status != nullptr && object.contains("status"))
    Validator(errors, "status.").check(*status, object["status"], "status");
  if (!has_rules(*resource.schema)) return;
  if (std::any_of(errors.begin(), errors.end(), blocks_rules)) {
    errors.push_back(invalid_value("<nil>", nullptr,
                                   "some validation rules were not checked because the object was invalid; correct the "
                                   "existing errors to complete validation"));
    return;
  }
  check_rules(*resource.schema, object, old, "", errors);
}

}  // namespace gso::sim
