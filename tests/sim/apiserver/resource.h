// What the server serves: one Resource for each kind and version, built in or by CustomResourceDefinition, and the
// rules of the kind (defaults, validation, what a write may change).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "k8sclient/value/object.h"
#include "k8sclient/value/time.h"
#include "tests/sim/apiserver/schema.h"
#include "tests/sim/apiserver/status.h"

namespace gso::sim {

// One column of `kubectl get`.
struct Column {
  std::string name;
  std::string type = "string";
  std::string description;
  int priority = 0;       // Above 0: only with -o wide.
  std::string json_path;  // CRD columns: ".spec.x"; empty for built-in kinds, which print themselves.
};

// The rules of one kind. Every hook may be empty. Objects are whole and normalised; `old` is the stored object.
struct Strategy {
  using Json = nlohmann::json;
  std::function<void(Json& object)> set_defaults;
  // Sets what only the server is allowed to set, and removes what a create must not set.
  std::function<void(Json& object)> prepare_create;
  // Restores what a write to the main resource must not change (beyond status and metadata).
  std::function<void(Json& object, const Json& old)> prepare_update;
  std::function<void(const Json& object, FieldErrors&)> validate;
  std::function<void(const Json& object, FieldErrors&)> validate_create;  // What only a create must hold.
  std::function<void(const Json& object, const Json& old, FieldErrors&)> validate_update;
  // Writes to /status restore everything but status and, for kinds where that is so, metadata.
  bool status_write_keeps_metadata = false;
  bool create_keeps_status = false;  // Nodes.
  bool has_generation = false;       // Bumped when anything but metadata and status changes.
  bool unconditional_update = true;  // PUT without resourceVersion.
  bool create_on_update = false;     // PUT of a missing object creates it.
  bool returns_deleted = false;      // DELETE answers with the object instead of a Status.
  bool graceful = false;             // Pods.
  int metadata_checks = 4;           // How often an update's labels and the like are checked (and errors repeated).
  enum class Name { subdomain, label, path_segment } name = Name::subdomain;
};

struct Resource {
  std::string group;
  std::string version;
  std::string plural;
  std::string singular;
  std::string kind;
  std::string list_kind;
  bool namespaced = true;
  std::vector<std::string> short_names;
  std::vector<std::string> categories;
  bool has_status = false;
  std::vector<std::string> subresources;            // Without status: "eviction", "binding", "finalize".
  bool create_only = false;                         // Reviews: POST only, nothing is stored.
  const Schema* schema = nullptr;                   // nullptr: anything.
  std::shared_ptr<const SchemaArena> schema_owner;  // CRDs.
  bool custom = false;
  bool pruning = true;  // CRDs: false with preserveUnknownFields.
  std::string crd_name;
  // Selectable fields besides metadata.name and metadata.namespace: "spec.nodeName" -> the same as a path.
  std::vector<std::string> selectable;
  std::vector<Column> columns;
  Strategy strategy;
  std::string bucket;           // Where it is stored: shared by all versions, and by both groups of events.
  std::string storage_version;  // "v1", "apps/v1": the apiVersion in storage.
  // Set when the stored form differs from the served one.
  std::function<void(nlohmann::json&)> to_storage;
  std::function<void(nlohmann::json&)> from_storage;

  [[nodiscard]] std::string api_version() const { return group.empty() ? version : group + "/" + version; }
  [[nodiscard]] Noun noun() const { return {group, plural, kind}; }
  [[nodiscard]] k8s::Gvr gvr() const { return {group, version, plural}; }
};
using ResourcePtr = std::shared_ptr<const Resource>;

// All resources served now.
class Registry {
 public:
  Registry();  // With the built-in ones.

  [[nodiscard]] ResourcePtr find(std::string_view group, std::string_view version, std::string_view plural) const;
  // The preferred version of a resource, or of a kind.
  [[nodiscard]] ResourcePtr find_kind(std::string_view group, std::string_view kind) const;
  [[nodiscard]] bool has_group_version(std::string_view group, std::string_view version) const;
  [[nodiscard]] bool has_group(std::string_view group) const;
  [[nodiscard]] const std::vector<ResourcePtr>& all() const { return resources_; }
  void add(ResourcePtr resource);
  void remove_crd(std::string_view crd_name);

 private:
  std::vector<ResourcePtr> resources_;  // In order of discovery.
};

// The built-in resources with their rules (builtin_*.cc).
[[nodiscard]] std::vector<ResourcePtr> builtin_resources();

// Normalises to the kind's type: Go's round trip for built-in kinds, pruning and defaulting for custom ones. Returns
// the BadRequest text of what does not fit.
[[nodiscard]] std::optional<std::string> normalize_object(const Resource& resource, nlohmann::json& object);

// The values of the selectable fields of an object.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> selectable_fields(const Resource& resource,
                                                                                 const nlohmann::json& object);

}  // namespace gso::sim
