// Types of Kubernetes objects, for built-in kinds (builtin_types*.cc) and custom resources (crd.cc) alike: one tree
// serves reading and normalising objects, strategic merge, server-side apply and the published OpenAPI.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gso::sim {

struct Constraints;  // Value rules of a CRD schema (structural.h).

// A type as used at one place: list and merge behaviour belong to the use, so equal types may be several nodes.
struct Schema {
  enum class Type {
    any,  // Anything, kept as it is.
    object,
    map,
    list,
    string,
    int32,
    int64,
    number,
    boolean,
    int_or_string,
    quantity,
    time,
    micro_time,
    bytes
  };
  enum class ListType { atomic, set, map };
  struct Field {
    std::string name;
    const Schema* schema = nullptr;
    // How Go writes it: a zero value that is `omitempty` and no pointer disappears; structs only with `omitzero`.
    bool omitempty = false;
    bool pointer = false;
    bool omitzero = false;
    bool required = false;
  };

  Type type = Type::any;
  std::string name;                 // "core.Container"; empty for what has no name.
  std::vector<Field> fields;        // Of an object; sorted by name.
  const Schema* element = nullptr;  // Of a list or a map.
  ListType list_type = ListType::atomic;
  std::vector<std::string> list_keys;  // Server-side apply's keys of a list of type map.
  bool atomic = false;                 // An object or map that apply owns as a whole.
  bool merge = false;                  // Strategic merge patch merges this list (by merge_key, or as a set of values).
  std::string merge_key;
  bool retain_keys = false;
  bool preserve_unknown = false;  // CRD: unknown fields stay.
  bool embedded_object = false;   // CRD: x-kubernetes-embedded-resource.
  bool nullable = false;
  std::string description;
  std::shared_ptr<const Constraints> constraints;

  // nullptr when there is no such field.
  [[nodiscard]] const Field* field(std::string_view field_name) const;
  // The type of a member of an object or map; nullptr when unknown.
  [[nodiscard]] const Schema* member(std::string_view member_name) const;
};

// Owns the nodes of one schema; they live as long as the arena.
using SchemaArena = std::deque<Schema>;

// A built-in type by its name, "core.Pod", "apps.DaemonSet", "meta.ObjectMeta"; nullptr when unknown. Never freed.
[[nodiscard]] const Schema* builtin_schema(std::string_view name);

// Reads `value` as Go reads and writes the type: unknown fields go, nulls and empty optional values go, mandatory
// structs appear. Returns what is wrong, in the words of the real server, or nullopt.
[[nodiscard]] std::optional<std::string> normalize(const Schema& schema, nlohmann::json& value);

// The paths of members that the type does not have ("spec.colour"), sorted.
[[nodiscard]] std::vector<std::string> unknown_fields(const Schema& schema, const nlohmann::json& value);

}  // namespace gso::sim
