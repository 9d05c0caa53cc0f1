// Sets of fields, as metadata.managedFields keeps them (FieldsV1), and the structured comparison, merge and removal
// that server-side apply is made of.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tests/sim/apiserver/schema.h"

namespace gso::sim {

// A trie over FieldsV1's path elements: "f:name", "k:{\"name\":\"x\"}", "v:\"x\"". A node is a member of the set by
// itself, or has members below it, or both.
struct FieldSet {
  bool member = false;
  std::map<std::string, FieldSet> children;

  [[nodiscard]] bool empty() const { return !member && children.empty(); }
  [[nodiscard]] static FieldSet from_json(const nlohmann::json& fields_v1);
  [[nodiscard]] nlohmann::json to_json() const;
  // The paths of all members, as conflicts are printed: ".spec.containers[name=\"c\"].image".
  [[nodiscard]] std::vector<std::string> paths() const;
  friend bool operator==(const FieldSet&, const FieldSet&) = default;
};

[[nodiscard]] FieldSet unite(FieldSet a, const FieldSet& b);
[[nodiscard]] FieldSet subtract(const FieldSet& a, const FieldSet& b);
[[nodiscard]] FieldSet intersect(const FieldSet& a, const FieldSet& b);
// What of `a` is not in `b`, where a node with members below it counts as a member of `b`.
[[nodiscard]] FieldSet subtract_covered(const FieldSet& a, const FieldSet& b);

// What the two would be asked of a set's FieldsV1, without making the set: whether it has a member of `set`, and
// whether it has all of them.
[[nodiscard]] bool overlaps(const nlohmann::json& fields_v1, const FieldSet& set);
[[nodiscard]] bool covers(const nlohmann::json& fields_v1, const FieldSet& set);

// All leaves of a value, list items of associative lists included: what an applied configuration owns.
[[nodiscard]] FieldSet leaves(const Schema* schema, const nlohmann::json& value);

struct FieldChanges {
  FieldSet added_or_modified;
  FieldSet removed;
};
[[nodiscard]] FieldChanges compare_fields(const Schema* schema, const nlohmann::json& before,
                                          const nlohmann::json& after);

// `config` over `live`, as apply merges: maps by key, associative lists by their keys, the rest replaced.
[[nodiscard]] nlohmann::json merge_fields(const Schema* schema, const nlohmann::json& live,
                                          const nlohmann::json& config);
// Removes the members of `fields`; containers left empty go too.
void remove_fields(const Schema* schema, nlohmann::json& value, const FieldSet& fields);

// Why a value cannot be applied as this type (".data.a: expected string, got …"), one a line; empty when it can.
[[nodiscard]] std::vector<std::string> typing_errors(const Schema* schema, const nlohmann::json& value);

}  // namespace gso::sim
