// Custom resources: structural schemas read from CustomResourceDefinitions, with pruning, defaulting and validation.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/apiserver/resource.h"

namespace gso::sim {

// The value rules of one schema node.
struct Constraints {
  struct Rule {  // x-kubernetes-validations
    std::string rule;
    std::string message;
    std::string reason;      // "FieldValueInvalid" unless given.
    std::string field_path;  // Relative, ".spec.x"; empty is the node itself.
  };
  nlohmann::json default_value = nlohmann::json(nlohmann::json::value_t::discarded);
  nlohmann::json enumeration;  // An array, or null.
  std::optional<double> minimum;
  std::optional<double> maximum;
  bool exclusive_minimum = false;
  bool exclusive_maximum = false;
  std::optional<double> multiple_of;
  std::optional<std::size_t> min_length, max_length, min_items, max_items, min_properties, max_properties;
  bool unique_items = false;
  std::string pattern;
  std::string format;  // "int32", "date-time", …
  std::vector<std::string> required;
  // Value validations that are schemas themselves.
  std::vector<const Schema*> all_of, any_of, one_of;
  const Schema* negated = nullptr;
  std::vector<Rule> rules;
};

// Reads an openAPIV3Schema; nodes are added to the arena. The root gets apiVersion, kind and metadata.
[[nodiscard]] const Schema* read_structural_schema(const nlohmann::json& open_api, SchemaArena& arena);

// Prunes, drops nulls, and fills defaults. Returns the text of a BadRequest, or nullopt.
[[nodiscard]] std::optional<std::string> normalize_custom(const Resource& resource, nlohmann::json& object);

// Types, values and CEL rules (cel.h). `old` is null on a create.
// A write to the status subresource has its status checked only, the rules aside.
void validate_custom(const Resource& resource, const nlohmann::json& object, const nlohmann::json* old,
                     bool status_only, FieldErrors& errors);

}  // namespace gso::sim
