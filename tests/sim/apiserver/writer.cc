// Create and update, and how any new state is checked and stored. The order of the steps is that of k8s.io/apiserver's
// handlers and of its generic registry store: decode, admission, strategy, managed fields, validation, storage.
#include "tests/sim/apiserver/writer.h"

#include <fmt/format.h>

#include "tests/sim/apiserver/decoding.h"
#include "tests/sim/apiserver/managed_fields.h"
#include "tests/sim/apiserver/representation.h"
#include "tests/sim/apiserver/structural.h"
#include "tests/sim/apiserver/validation.h"
#include "tests/sim/apiserver/yaml.h"

namespace gso::sim {
namespace {

using nlohmann::json;

constexpr std::size_t kMostStoredBytes = 1536 * 1024;  // etcd's --max-request-bytes.

// Equal, whenever the managers last wrote: then there is nothing to store.
bool same_but_for_times(const json& a, const json& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, value] : a.items()) {
    auto other = b.find(name);
    if (other == b.end() || (name != "metadata" && value != *other)) return false;
  }
  json metadata = a["metadata"];
  json other = b["metadata"];
  for (json* side : {&metadata, &other}) {
    auto managed = side->find("managedFields");
    if (managed == side->end()) continue;
    for (auto& entry : *managed) entry.erase("time");
  }
  return metadata == other;
}

// Events of either API are checked as core/v1's.
Noun error_noun(const Resource& resource) {
  return resource.bucket == "events" ? Noun{"", resource.plural, resource.kind} : resource.noun();
}

// Most of what is written is what is stored, and to compare costs less than to copy.
void assign(json& to, const json& from) {
  if (to != from) to = from;
}

// Leaves `object` its metadata and its status, unless that is null, and takes the rest from the stored object.
void take_all_but_status(json& object, const json& old) {
  for (auto it = object.begin(); it != object.end();) {
    const bool stays = it.key() == "status" ? !it->is_null() : it.key() == "metadata" || old.contains(it.key());
    it = stays ? std::next(it) : object.erase(it);
  }
  for (const auto& [name, value] : old.items())
    if (name != "status" && name != "metadata") assign(object[name], value);
}

// Everything that a spec generation counts: all but metadata and status.
json generation_part(const Resource& resource, const json& object) {
  if (!resource.custom) return object.value("spec", json());
  json part = object;
  part.erase("metadata");
  if (resource.has_status) part.erase("status");
  return part;
}

}  // namespace

Writer::Writer(Registry& registry, Storage& storage, k8s::Clock& clock, WriterOptions options)
    : registry_(registry), storage_(storage), clock_(clock), options_(options), random_(options.seed) {}

std::string Writer::new_uid() {
  const std::uint64_t a = random_();
  const std::uint64_t b = random_();
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}", a >> 32, a >> 16 & 0xffff, a & 0xfff,
                     (b >> 48 & 0x3fff) | 0x8000, b & 0xffffffffffff);
}

std::string Writer::random_suffix() {
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  std::string suffix;
  for (int i = 0; i < 5; ++i) suffix += kLetters[random_() % kLetters.size()];
  return suffix;
}

std::optional<std::string> Writer::check_unknown(const WriteRequest& request, const json& object) {
  warnings_.clear();
  if (request.unknown == WriteRequest::Unknown::ignore || request.resource->schema == nullptr) return std::nullopt;
  std::string refusal;
  std::vector<std::string> findings;
  if (request.content_type.find("patch") == std::string::npos)
    for (const auto& path : duplicate_fields(request.body)) findings.push_back("duplicate field " + json(path).dump());
  for (const auto& path : unknown_fields(*request.resource->schema, object))
    findings.push_back("unknown field " + json(path).dump());
  for (const std::string& text : findings) {
    if (request.unknown == WriteRequest::Unknown::warn) warnings_.push_back(text);
    refusal += (refusal.empty() ? "strict decoding error: " : ", ") + text;
  }
  if (refusal.empty() || request.unknown == WriteRequest::Unknown::warn) return std::nullopt;
  return refusal;
}

Outcome<json> Writer::decode(const WriteRequest& request) {
  const Resource& resource = *request.resource;
  if (!is_json_or_yaml(request.content_type)) {
    return std::unexpected(ApiError(415, "UnsupportedMediaType",
                                    "the body of the request was in an unknown format - accepted media types include: "
                                    "application/json, application/yaml, application/vnd.kubernetes.protobuf"));
  }
  json object = request.content_type.starts_with("application/yaml") ? yaml_to_json(request.body)
                                                                     : json::parse(request.body, nullptr, false);
  if (!object.is_object()) {
    return std::unexpected(
        bad_request(fmt::format("the object provided is unrecognized (must be of type {}): couldn't get version/kind; "
                                "json parse error: {} ({})",
                                resource.kind, decoder_complaint(object), summary(request.body))));
  }
  if (auto problem = type_problem(resource, object)) return std::unexpected(bad_request(*problem));
  if (const std::string kind = object.value("kind", ""); resource.custom && kind != resource.kind) {
    const std::string name = object.value("metadata", json::object()).value("name", "");
    return std::unexpected(invalid({resource.group, resource.plural, kind}, name,
                                   {invalid_value("kind", kind, fmt::format("must be {}", resource.kind))}));
  }
  object["apiVersion"] = resource.api_version();
  object["kind"] = resource.kind;
  if (!object.contains("metadata") || object["metadata"].is_null()) object["metadata"] = json::object();
  if (!object["metadata"].is_object()) {
    return std::unexpected(
        bad_request(fmt::format("{0} in version \"{1}\" cannot be handled as a {0}: json: cannot unmarshal "
                                "{2} into Go struct field {0}.metadata of type v1.ObjectMeta",
                                resource.kind, resource.version, object["metadata"].type_name())));
  }
  if (auto problem = check_unknown(request, object)) {
    return std::unexpected(bad_request(fmt::format("{0} in version \"{1}\" cannot be handled as a {0}: {2}",
                                                   resource.kind, resource.version, *problem)));
  }
  if (auto problem = normalize_object(resource, object)) {
    return std::unexpected(bad_request(fmt::format("{0} in version \"{1}\" cannot be handled as a {0}: {2}",
                                                   resource.kind, resource.version, *problem)));
  }
  return object;
}

std::optional<ApiError> Writer::check_namespace(const WriteRequest& request, const std::string& name) const {
  if (!request.resource->namespaced) return std::nullopt;
  const ObjectPtr ns = storage_.bucket("namespaces").find({"", request.key.ns});
  const Noun namespaces{"", "namespaces", "Namespace"};
  if (ns == nullptr) return not_found(namespaces, request.key.ns);
  if (!ns->deleting()) return std::nullopt;
  ApiError error = forbidden(
      request.resource->noun(), name,
      fmt::format("unable to create new content in namespace {} because it is being terminated", request.key.ns));
  error.cause("NamespaceTerminating", fmt::format("namespace {} is being terminated", request.key.ns),
              "metadata.namespace");
  return error;
}

FieldErrors Writer::validate(const WriteRequest& request, const json& object, const json* old) const {
  const Resource& resource = *request.resource;
  FieldErrors errors;
  if (old == nullptr)
    validate_metadata(resource, object, errors);
  else
    validate_metadata_update(resource, object, *old, errors);
  if (resource.custom) {
    validate_custom(resource, object, old, request.subresource == "status", errors);
  } else if (request.subresource.empty()) {
    if (resource.strategy.validate) resource.strategy.validate(object, errors);
    if (old == nullptr && resource.strategy.validate_create) resource.strategy.validate_create(object, errors);
    if (old != nullptr && resource.strategy.validate_update) resource.strategy.validate_update(object, *old, errors);
  }
  return errors;
}

Outcome<WriteResult> Writer::create(const WriteRequest& request) {
  auto object = decode(request);
  if (!object) return std::unexpected(object.error());
  const std::string ns = (*object)["metadata"].value("namespace", "");
  if (request.resource->namespaced ? !ns.empty() && ns != request.key.ns : !ns.empty()) {
    return std::unexpected(
        bad_request("the namespace of the provided object does not match the namespace sent on the request"));
  }
  if (!(*object)["metadata"].value("resourceVersion", "").empty())
    return std::unexpected(ApiError(500, "", "resourceVersion should not be set on objects to be created"));
  return create_object(request, std::move(*object), true);
}

Outcome<WriteResult> Writer::create_object(const WriteRequest& request, json object, bool track) {
  const Resource& resource = *request.resource;
  const Strategy& rules = resource.strategy;
  json& metadata = object["metadata"];
  if (auto prefix = metadata.value("generateName", ""); metadata.value("name", "").empty() && !prefix.empty())
    metadata["name"] = prefix.substr(0, 58) + random_suffix();
  const std::string name = metadata.value("name", "");
  if (auto error = check_namespace(request, name)) return std::unexpected(std::move(*error));
  if (resource.has_status && !rules.create_keeps_status) {
    object.erase("status");
    if (auto problem = normalize_object(resource, object)) return std::unexpected(bad_request(*problem));
  }
  json& meta = object["metadata"];
  for (const char* member : {"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"}) meta.erase(member);
  if (resource.namespaced) meta["namespace"] = request.key.ns;
  meta["uid"] = new_uid();
  meta["creationTimestamp"] = k8s::format_time(clock_.now());
  if (rules.has_generation || resource.custom) meta["generation"] = 1;
  if (rules.set_defaults) rules.set_defaults(object);
  if (track) track_update(resource, {request.manager, request.subresource, clock_.now()}, json::object(), object);
  if (resource.to_storage) resource.to_storage(object);
  if (rules.prepare_create) rules.prepare_create(object);
  if (options_.taint_new_nodes && resource.bucket == "nodes")
    object["spec"]["taints"].push_back({{"key", "node.kubernetes.io/not-ready"}, {"effect", "NoSchedule"}});
  if (auto errors = validate(request, object, nullptr); !errors.empty())
    return std::unexpected(invalid(error_noun(resource), name, errors));
  if (const ObjectPtr taken = bucket(resource).find({resource.namespaced ? request.key.ns : "", name})) {
    ApiError error = already_exists(resource.noun(), name);
    if (taken->deleting()) error.prefix_message("object is being deleted: ");
    return std::unexpected(std::move(error));
  }
  auto stored = commit(request.resource, nullptr, std::move(object), request.dry_run);
  if (!stored) return std::unexpected(stored.error());
  return WriteResult{201, std::move(*stored), nullptr};
}

Outcome<WriteResult> Writer::update(const WriteRequest& request) {
  auto object = decode(request);
  if (!object) return std::unexpected(object.error());
  const json& metadata = (*object)["metadata"];
  const std::string name = metadata.value("name", "");
  if (name.empty()) {
    return std::unexpected(bad_request(fmt::format(
        "the name of the object ({} based on URL) was undeterminable: name must be provided", request.key.name)));
  }
  if (name != request.key.name) {
    return std::unexpected(bad_request(
        fmt::format("the name of the object ({}) does not match the name on the URL ({})", name, request.key.name)));
  }
  const std::string ns = metadata.value("namespace", "");
  if (!ns.empty() && ns != request.key.ns) {
    return std::unexpected(
        bad_request("the namespace of the provided object does not match the namespace sent on the request"));
  }
  const ObjectPtr live = bucket(*request.resource).find(request.key);
  if (live == nullptr) {
    if (!request.resource->strategy.create_on_update || !request.subresource.empty())
      return std::unexpected(not_found(request.resource->noun(), request.key.name));
    return create_object(request, std::move(*object), true);
  }
  return replace(request, live, std::move(*object), true);
}

void Writer::carry_over(const WriteRequest& request, const json& old, json& object, bool keep_managers) const {
  const Resource& resource = *request.resource;
  const bool status_write = request.subresource == "status";
  json& metadata = object["metadata"];
  const json& before = old["metadata"];
  if (status_write && resource.custom) {
    json status = object.value("status", json());
    json managed = metadata.value("managedFields", json());
    object = old;
    if (status.is_null())
      object.erase("status");
    else
      object["status"] = std::move(status);
    if (!managed.is_null())
      object["metadata"]["managedFields"] = std::move(managed);
    else if (!keep_managers)
      object["metadata"].erase("managedFields");
  } else if (status_write) {
    take_all_but_status(object, old);
  } else if (resource.has_status) {
    if (old.contains("status"))
      assign(object["status"], old["status"]);
    else
      object.erase("status");
  }
  json& meta = object["metadata"];
  for (const char* member : {"creationTimestamp", "deletionGracePeriodSeconds", "generation"})
    if (before.contains(member))
      meta[member] = before[member];
    else
      meta.erase(member);
  for (const char* member : {"uid", "namespace", "deletionTimestamp"})  // Another value is refused by validation.
    if (meta.value(member, "").empty() && before.contains(member)) meta[member] = before[member];
  if (keep_managers && !meta.contains("managedFields") && before.contains("managedFields"))
    meta["managedFields"] = before["managedFields"];
}

std::optional<ApiError> Writer::check_versions(const WriteRequest& request, const json& object, const json& old,
                                               bool from_patch) const {
  const Noun noun = request.resource->noun();
  const json& metadata = object["metadata"];
  const std::string uid = metadata.value("uid", "");
  if (!uid.empty() && uid != old["metadata"]["uid"] && !from_patch) {
    const std::string path = request.resource->plural + "/" + storage_key(request.key);
    return conflict(
        noun, request.key.name,
        fmt::format("StorageError: invalid object, Code: 4, Key: /registry/{}, ResourceVersion: 0, "
                    "AdditionalErrorMsg: Precondition failed: UID in precondition: {}, UID in object meta: {}",
                    path, uid, old["metadata"]["uid"].get<std::string>()));
  }
  const std::string version = metadata.value("resourceVersion", "");
  const bool unset = version.empty() || version == "0";
  if (!unset && version != old["metadata"]["resourceVersion"]) return stale_write(noun, request.key.name);
  if (unset && !from_patch && (request.resource->custom || !request.resource->strategy.unconditional_update)) {
    return invalid({noun.group, noun.resource, noun.resource}, request.key.name,
                   {invalid_value("metadata.resourceVersion", 0, "must be specified for an update")});
  }
  return std::nullopt;
}

Outcome<WriteResult> Writer::replace(const WriteRequest& request, const ObjectPtr& live, json object, bool track) {
  const Resource& resource = *request.resource;
  const Strategy& rules = resource.strategy;
  const std::shared_ptr<const json> stored = live->parsed();
  const json converted = resource.to_storage ? served_json(resource, *live) : json();
  const json& old = resource.to_storage ? converted : *stored;  // As this version shows it.
  const bool from_patch = request.content_type.find("patch") != std::string::npos;
  if (auto error = check_versions(request, object, old, from_patch)) return std::unexpected(std::move(*error));
  const bool main = request.subresource.empty();
  if (rules.set_defaults) rules.set_defaults(object);
  carry_over(request, old, object, track);
  if (track) track_update(resource, {request.manager, request.subresource, clock_.now()}, old, object);
  if (resource.to_storage) resource.to_storage(object);
  if (main && rules.prepare_update) rules.prepare_update(object, *stored);
  if (main && (rules.has_generation || resource.custom) &&
      generation_part(resource, object) != generation_part(resource, *stored)) {
    object["metadata"]["generation"] = old["metadata"].value("generation", std::int64_t{0}) + 1;
  }
  if (auto errors = validate(request, object, stored.get()); !errors.empty())
    return std::unexpected(invalid(error_noun(resource), request.key.name, errors));
  object["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"];
  if (same_but_for_times(object, *stored)) return WriteResult{200, live, nullptr};
  const json& metadata = object["metadata"];
  const bool finished = metadata.contains("deletionTimestamp") && metadata.value("finalizers", json::array()).empty() &&
                        metadata.value("deletionGracePeriodSeconds", 0) == 0 && resource.bucket != "namespaces";
  if (finished && !request.dry_run) {  // The last state that was stored is what watchers see go.
    (void)erase(request.resource, live, *stored);
    auto fields = selectable_fields(resource, object);
    return WriteResult{200, std::make_shared<const Object>(std::move(object), std::move(fields)), nullptr};
  }
  auto committed = commit(request.resource, live, std::move(object), request.dry_run);
  if (!committed) return std::unexpected(committed.error());
  return WriteResult{200, std::move(*committed), nullptr};
}

Outcome<ObjectPtr> Writer::commit(const ResourcePtr& resource, const ObjectPtr& before, json object, bool dry_run) {
  if (!dry_run) object["metadata"]["resourceVersion"] = std::to_string(storage_.next_revision());
  auto fields = selectable_fields(*resource, object);
  ObjectPtr stored = std::make_shared<const Object>(std::move(object), std::move(fields));
  if (dry_run) return stored;
  if (stored->body().size() > kMostStoredBytes)
    return std::unexpected(ApiError(500, "", "etcdserver: request is too large"));
  changes_.push_back({resource, before, stored});
  storage_.put(resource->bucket, stored);
  if (resource->kind == "CustomResourceDefinition" && crd_listener_) {
    const auto old = before == nullptr ? nullptr : before->parsed();
    crd_listener_(old.get(), stored->parsed().get());
  }
  return stored;
}

}  // namespace gso::sim
