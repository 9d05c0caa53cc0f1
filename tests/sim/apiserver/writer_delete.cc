// Deletion: preconditions, grace, finalizers; and the writes of the server's own actors.
#include <fmt/format.h>

#include "tests/sim/apiserver/writer.h"

namespace gso::sim {
namespace {

using nlohmann::json;

WriteResult deleted_status(const Resource& resource, const Object& object) {
  json details = {{"name", object.key().name}, {"kind", resource.plural}, {"uid", object.uid()}};
  if (!resource.group.empty()) details["group"] = resource.group;
  return {200,
          nullptr,
          {{"kind", "Status"},
           {"apiVersion", "v1"},
           {"metadata", json::object()},
           {"status", "Success"},
           {"details", std::move(details)}}};
}

void add_finalizer(json& object, const char* finalizer) {
  json& list = object["metadata"]["finalizers"];
  if (!list.is_array()) list = json::array();
  for (const auto& f : list)
    if (f == finalizer) return;
  list.push_back(finalizer);
}

std::optional<ApiError> check_preconditions(const Resource& resource, const Object& object,
                                            const DeleteOptions& options) {
  // The real server names the kind here, where all other conflicts name the resource.
  const Noun noun{resource.group, resource.kind, resource.kind};
  const std::string& name = object.key().name;
  if (!options.uid.empty() && options.uid != object.uid()) {
    return conflict(
        noun, name,
        fmt::format("the UID in the precondition ({}) does not match the UID in record ({}). The object might "
                    "have been deleted and then recreated",
                    options.uid, object.uid()));
  }
  if (!options.resource_version.empty() && options.resource_version != std::to_string(object.revision())) {
    return conflict(
        noun, name,
        fmt::format("the ResourceVersion in the precondition ({}) does not match the ResourceVersion in record "
                    "({}). The object might have been modified",
                    options.resource_version, object.revision()));
  }
  return std::nullopt;
}

// Seconds of grace that a pod gets.
std::int64_t pod_grace(const json& pod, const DeleteOptions& options) {
  const json spec = pod.value("spec", json::object());
  const std::string phase = pod.value("status", json::object()).value("phase", "");
  if (spec.value("nodeName", "").empty() || phase == "Succeeded" || phase == "Failed") return 0;
  if (options.grace_seconds) return *options.grace_seconds < 0 ? 1 : *options.grace_seconds;
  return spec.value("terminationGracePeriodSeconds", std::int64_t{30});
}

}  // namespace

void Writer::mark_deleting(json& object, std::int64_t grace) const {
  json& metadata = object["metadata"];
  metadata["deletionTimestamp"] = k8s::format_time(clock_.now() + std::chrono::seconds(grace));
  metadata["deletionGracePeriodSeconds"] = grace;
  if (const auto generation = metadata.value("generation", std::int64_t{0}); generation > 0)
    metadata["generation"] = generation + 1;
}

Outcome<WriteResult> Writer::delete_pod_gracefully(const ResourcePtr& resource, const ObjectPtr& pod,
                                                   std::int64_t grace, const DeleteOptions& options) {
  json object = *pod->parsed();
  const json& metadata = object["metadata"];
  if (pod->deleting()) {
    const auto current = metadata.value("deletionGracePeriodSeconds", std::int64_t{0});
    if (grace >= current) return WriteResult{200, pod, nullptr};  // Only shorter is news.
    const auto since = k8s::parse_rfc3339(metadata["deletionTimestamp"].get<std::string>());
    object["metadata"]["deletionTimestamp"] =
        k8s::format_time(since.value_or(clock_.now()) - std::chrono::seconds(current - grace));
    object["metadata"]["deletionGracePeriodSeconds"] = grace;
  } else {
    mark_deleting(object, grace);
  }
  auto stored = commit(resource, pod, std::move(object), options.dry_run);
  if (!stored) return std::unexpected(stored.error());
  return WriteResult{200, std::move(*stored), nullptr};
}

// The end of a pod is two writes: its grace becomes 0, and it goes.
Outcome<WriteResult> Writer::delete_at_once(const ResourcePtr& resource, const ObjectPtr& pod, json last,
                                            const DeleteOptions& options) {
  if (pod->deleting()) {
    last["metadata"]["deletionTimestamp"] = k8s::format_time(clock_.now());
    last["metadata"]["deletionGracePeriodSeconds"] = 0;
  } else {
    mark_deleting(last, 0);
  }
  auto marked = commit(resource, pod, std::move(last), options.dry_run);
  if (!marked) return std::unexpected(marked.error());
  if (options.dry_run) return WriteResult{200, std::move(*marked), nullptr};
  return WriteResult{200, erase(resource, *marked, *(*marked)->parsed()), nullptr};
}

Outcome<WriteResult> Writer::remove(const ResourcePtr& resource, const k8s::ObjectKey& key,
                                    const DeleteOptions& options) {
  const ObjectPtr object = bucket(*resource).find(key);
  if (object == nullptr) return std::unexpected(not_found(resource->noun(), key.name));
  if (auto error = check_preconditions(*resource, *object, options)) return std::unexpected(std::move(*error));
  const Strategy& rules = resource->strategy;
  if (rules.graceful) {
    if (const auto grace = pod_grace(*object->parsed(), options); grace > 0)
      return delete_pod_gracefully(resource, object, grace, options);
  }
  json last = *object->parsed();
  if (options.propagation == "Foreground") add_finalizer(last, "foregroundDeletion");
  if (options.propagation == "Orphan") add_finalizer(last, "orphan");
  const bool is_namespace = resource->bucket == "namespaces";
  if (is_namespace || !last["metadata"].value("finalizers", json::array()).empty()) {
    if (object->deleting() && last == *object->parsed() && !rules.graceful) return WriteResult{200, object, nullptr};
    if (is_namespace) last["status"]["phase"] = "Terminating";
    if (!object->deleting()) mark_deleting(last, 0);
    if (rules.graceful) last["metadata"]["deletionGracePeriodSeconds"] = 0;
    if (is_namespace) last["metadata"].erase("deletionGracePeriodSeconds");
    auto stored = commit(resource, object, std::move(last), options.dry_run);
    if (!stored) return std::unexpected(stored.error());
    return WriteResult{200, std::move(*stored), nullptr};
  }
  if (rules.graceful) return delete_at_once(resource, object, std::move(last), options);
  ObjectPtr removed = object;
  if (!options.dry_run) removed = erase(resource, object, std::move(last));
  if (rules.returns_deleted) return WriteResult{200, std::move(removed), nullptr};
  return deleted_status(*resource, *object);
}

ObjectPtr Writer::erase(const ResourcePtr& resource, const ObjectPtr& object, json last) {
  last["metadata"]["resourceVersion"] = std::to_string(storage_.next_revision());
  auto fields = selectable_fields(*resource, last);
  auto removed = std::make_shared<const Object>(std::move(last), std::move(fields));
  changes_.push_back({resource, object, nullptr});
  storage_.remove(resource->bucket, removed);
  if (resource->kind == "CustomResourceDefinition" && crd_listener_) crd_listener_(removed->parsed().get(), nullptr);
  return removed;
}

void Writer::erase_object(const ResourcePtr& resource, const ObjectPtr& object) {
  (void)erase(resource, object, *object->parsed());
}

void Writer::finish_namespace(const std::string& name) {
  const ObjectPtr object = storage_.bucket("namespaces").find({"", name});
  const ResourcePtr resource = registry_.find("", "v1", "namespaces");
  if (object != nullptr) (void)erase(resource, object, *object->parsed());
}

void Writer::seed_object(const ResourcePtr& resource, json object) {
  object["metadata"]["uid"] = new_uid();
  object["metadata"]["creationTimestamp"] = k8s::format_time(clock_.now());
  (void)commit(resource, nullptr, std::move(object), false);
}

void Writer::replace_object(const ResourcePtr& resource, const ObjectPtr& before, json object) {
  (void)commit(resource, before, std::move(object), false);
}

}  // namespace gso::sim
