// Every change of stored objects: create, update, patch, apply, delete, and the subresources that change pods.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/clock.h"
#include "tests/sim/apiserver/request.h"
#include "tests/sim/apiserver/resource.h"
#include "tests/sim/apiserver/status.h"
#include "tests/sim/apiserver/storage.h"

namespace gso::sim {

struct WriteRequest {
  ResourcePtr resource;
  k8s::ObjectKey key;  // The name is empty for a create.
  std::string subresource;
  std::string manager = "unknown";  // Field manager.
  std::string content_type = "application/json";
  std::string_view body;
  bool dry_run = false;
  bool force = false;                                                   // Of an apply.
  enum class Unknown { ignore, warn, refuse } unknown = Unknown::warn;  // fieldValidation.
};

struct DeleteOptions {
  std::optional<std::int64_t> grace_seconds;
  std::string uid;  // Preconditions; empty: none.
  std::string resource_version;
  std::string propagation;  // Foreground, Background, Orphan, or empty.
  bool dry_run = false;
};

// What a write answers with: an object, or (deletes, evictions) a Status or a list.
struct WriteResult {
  int status = 200;
  ObjectPtr object;  // As it is (or, in a dry run, would be) stored; null: `other`.
  nlohmann::json other;
};

// One stored object that changed.
struct Change {
  ResourcePtr resource;
  ObjectPtr before;
  ObjectPtr after;
};

struct WriterOptions {
  std::uint64_t seed = 1;
  bool taint_new_nodes = false;
};

class Writer {
 public:
  Writer(Registry& registry, Storage& storage, k8s::Clock& clock, WriterOptions options);

  [[nodiscard]] Outcome<WriteResult> create(const WriteRequest& request);
  [[nodiscard]] Outcome<WriteResult> update(const WriteRequest& request);
  // JSON, merge and strategic merge patches.
  [[nodiscard]] Outcome<WriteResult> patch(const WriteRequest& request);
  [[nodiscard]] Outcome<WriteResult> apply(const WriteRequest& request);
  [[nodiscard]] Outcome<WriteResult> remove(const ResourcePtr& resource, const k8s::ObjectKey& key,
                                            const DeleteOptions& options);
  [[nodiscard]] Outcome<WriteResult> evict(const WriteRequest& request);
  [[nodiscard]] Outcome<WriteResult> bind(const WriteRequest& request);
  // Namespaces' finalize subresource, used by the namespace controller: removes the namespace for good.
  void finish_namespace(const std::string& name);

  // Stores an object as it is (with a new uid and resourceVersion), around all rules: the server's own set-up.
  void seed_object(const ResourcePtr& resource, nlohmann::json object);
  // Replaces a stored object as it is (with a new resourceVersion), around all rules.
  void replace_object(const ResourcePtr& resource, const ObjectPtr& before, nlohmann::json object);
  // Removes a stored object at once, around finalizers and grace.
  void erase_object(const ResourcePtr& resource, const ObjectPtr& object);

  // The warnings of the last request.
  [[nodiscard]] std::vector<std::string> take_warnings() { return std::exchange(warnings_, {}); }
  // What changed since the last call.
  [[nodiscard]] std::vector<Change> take_changes() { return std::exchange(changes_, {}); }
  [[nodiscard]] bool has_changes() const { return !changes_.empty(); }
  // Called after a CustomResourceDefinition was stored (after == nullptr: removed).
  void set_crd_listener(std::function<void(const nlohmann::json* before, const nlohmann::json* after)> listener) {
    crd_listener_ = std::move(listener);
  }

 private:
  using Json = nlohmann::json;

  [[nodiscard]] Outcome<Json> decode(const WriteRequest& request);
  // Notes or refuses what the kind's type does not have: the text of strict decoding, or nullopt.
  [[nodiscard]] std::optional<std::string> check_unknown(const WriteRequest& request, const Json& object);
  // Both take objects in the served version's form, normalised. `live` is what the new state was made from.
  [[nodiscard]] Outcome<WriteResult> create_object(const WriteRequest& request, Json object, bool track);
  [[nodiscard]] Outcome<WriteResult> replace(const WriteRequest& request, const ObjectPtr& live, Json object,
                                             bool track);
  void carry_over(const WriteRequest& request, const Json& old, Json& object, bool keep_managers) const;
  [[nodiscard]] std::optional<ApiError> check_versions(const WriteRequest& request, const Json& object, const Json& old,
                                                       bool from_patch) const;
  [[nodiscard]] FieldErrors validate(const WriteRequest& request, const Json& object, const Json* old) const;
  [[nodiscard]] std::optional<ApiError> check_namespace(const WriteRequest& request, const std::string& name) const;
  [[nodiscard]] Outcome<WriteResult> delete_pod_gracefully(const ResourcePtr& resource, const ObjectPtr& pod,
                                                           std::int64_t grace, const DeleteOptions& options);
  [[nodiscard]] Outcome<WriteResult> delete_at_once(const ResourcePtr& resource, const ObjectPtr& pod, Json last,
                                                    const DeleteOptions& options);
  void mark_deleting(Json& object, std::int64_t grace) const;
  [[nodiscard]] Bucket& bucket(const Resource& resource) const { return storage_.bucket(resource.bucket); }
  [[nodiscard]] std::optional<ApiError> spend_disruption(const WriteRequest& request, const Object& pod, bool dry_run);
  // Stores and records; returns what was stored. A dry run only makes it.
  Outcome<ObjectPtr> commit(const ResourcePtr& resource, const ObjectPtr& before, Json object, bool dry_run);
  // Returns the last state with the revision of its end.
  ObjectPtr erase(const ResourcePtr& resource, const ObjectPtr& object, Json last);
  [[nodiscard]] std::string new_uid();
  [[nodiscard]] std::string random_suffix();

  Registry& registry_;
  Storage& storage_;
  k8s::Clock& clock_;
  WriterOptions options_;
  std::mt19937_64 random_;
  std::vector<Change> changes_;
  std::vector<std::string> warnings_;  // Of the request in progress.
  std::function<void(const Json*, const Json*)> crd_listener_;
};

}  // namespace gso::sim
