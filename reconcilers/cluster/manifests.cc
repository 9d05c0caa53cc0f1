// Manifests -> World, through the same projections as the live watches.
#include "reconcilers/cluster/manifests.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reconcilers/cluster/cluster_pods.h"
#include "reconcilers/model/kai_names.h"
#include "reconcilers/model/project.h"
#include "reconcilers/profile/document_value.h"
#include "reconcilers/profile/yaml_node.h"

namespace gso {

using Json = nlohmann::ordered_json;

namespace {

constexpr std::size_t kMaxBytes = std::size_t{256} << 20;

Json to_json(const DocumentValue& value) {
  switch (value.kind) {
    case DocumentValue::Kind::null:
      return nullptr;
    case DocumentValue::Kind::boolean:
      return value.boolean;
    case DocumentValue::Kind::string:
      return value.text;
    case DocumentValue::Kind::number: {
      Json number = Json::parse(value.text, nullptr, false);
      return number.is_discarded() ? Json(value.text) : number;
    }
    case DocumentValue::Kind::array: {
      Json out = Json::array();
      for (const DocumentValue& item : value.items) out.push_back(to_json(item));
      return out;
    }
    case DocumentValue::Kind::object: {
      Json out = Json::object();
      for (const DocumentMember& member : value.members) out[member.key] = to_json(member.value);
      return out;
    }
  }
  return nullptr;
}

k8s::Result<Json> document_to_json(const YamlDocument& document) {
  if (document.root == nullptr) return Json(nullptr);
  std::vector<Diagnostic> diagnostics;
  const DocumentValue value = to_document_value(*document.root, DecodeTarget::none, diagnostics);
  for (const Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.severity != Diagnostic::Severity::error) continue;
    return k8s::fail(k8s::Reason::decode, fmt::format("line {}: {}", diagnostic.line, diagnostic.message));
  }
  return to_json(value);
}

std::string text_of(const Json& object) {
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string string_at(const Json& object, const char* key) {
  auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

class Loader {
 public:
  explicit Loader(WallTime now) : now_(now) {}

  k8s::Result<void> add_file(const ManifestFile& file) {
    // JSON is parsed as JSON: that is faster, and YAML reads some escapes and characters differently.
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    std::string_view text = file.text;
    text.remove_prefix(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
    if (const auto first = text.find_first_not_of(" \t\r\n"); first != std::string_view::npos && text[first] == '{') {
      if (Json json = Json::parse(text, nullptr, false); !json.is_discarded())
        return add_document(file.name + "#0", json);
    }
    YamlLimits limits;
    limits.bytes = kMaxBytes;
    YamlStream stream(file.text, limits);
    int index = 0;
    while (auto document = stream.next()) {
      const std::string where = fmt::format("{}#{}", file.name, index++);
      auto json = document_to_json(*document);
      if (!json) return k8s::fail(k8s::Reason::decode, fmt::format("{}: {}", where, json.error().message));
      if (auto added = add_document(where, *json); !added) return added;
    }
    if (const auto& error = stream.error()) {
      return k8s::fail(k8s::Reason::decode,
                       fmt::format("{}:{}:{}: {}", file.name, error->at.line, error->at.column, error->message));
    }
    return {};
  }

  LoadedManifests finish() {
    World& world = out_.world;
    world.nodes.init_done();
    world.daemonsets.init_done();
    world.configmaps.init_done();
    world.revisions.init_done();
    world.clusterpolicies.init_done();
    world.gpu_clusters.init_done();
    world.device_classes.init_done();
    world.resource_slices.init_done();
    world.policies.init_done();
    world.rollouts.init_done();
    world.kai.configs.init_done();
    world.kai.bind_requests.init_done();
    world.kai.deployments.init_done();
    // Manifests without any might be only a part of the cluster.
    if (has_runtime_classes_) world.kai.runtime_classes.init_done();
    world.kai.schemas.init_done();
    world.partitioning.leases.init_done();
    world.partitioning.leases_known = true;
    LookupResults& lookups = world.kai.lookups;
    if (!lookups.binder_lease) lookups.binder_lease = LookupResults::Lease{now_, false, {}, {}};
    place_config_maps();
    pods_.place(world, out_.consumers, now_);
    return std::move(out_);
  }

 private:
  k8s::Result<void> add_document(const std::string& where, Json& document) {
    if (document.is_null()) return {};
    if (!document.is_object())
      return k8s::fail(k8s::Reason::decode, where + ": a manifest must be an object with a kind");
    const std::string kind = string_at(document, "kind");
    if (kind.empty()) return k8s::fail(k8s::Reason::decode, where + ": kind is missing");
    auto items = document.find("items");
    if (!kind.ends_with("List") || items == document.end() || !items->is_array())
      return add_object(where, kind, document);
    for (Json& item : *items) {
      if (!item.is_object()) return k8s::fail(k8s::Reason::decode, where + ": items must be objects");
      const std::string own = string_at(item, "kind");
      // The items of a typed list do not repeat their kind.
      const std::string item_kind = own.empty() ? kind.substr(0, kind.size() - 4) : own;
      if (auto added = add_object(where, item_kind, item); !added) return added;
    }
    return {};
  }

  // Fields that a server would have set.
  static void fill_meta(const std::string& kind, bool namespaced, Json& object) {
    Json& meta = object["metadata"];
    if (!meta.is_object()) return;
    if (namespaced && string_at(meta, "namespace").empty()) meta["namespace"] = "default";
    const std::string ns = string_at(meta, "namespace");
    auto uid = [](const std::string& of, const std::string& in, const std::string& name) {
      return fmt::format("{}/{}/{}", of, in, name);
    };
    if (string_at(meta, "uid").empty()) meta["uid"] = uid(kind, ns, string_at(meta, "name"));
    if (!meta.contains("resourceVersion")) meta["resourceVersion"] = "1";
    auto owners = meta.find("ownerReferences");
    if (owners == meta.end() || !owners->is_array()) return;
    for (Json& owner : *owners) {
      if (!owner.is_object() || !string_at(owner, "uid").empty()) continue;
      const bool cluster_scoped = string_at(owner, "kind") == "ClusterPolicy";
      owner["uid"] = uid(string_at(owner, "kind"), cluster_scoped ? "" : ns, string_at(owner, "name"));
    }
  }

  template <class T>
  k8s::Result<void> put(const std::string& where, k8s::Result<T> object, k8s::Store<T>& store) {
    if (!object) return k8s::fail(k8s::Reason::decode, fmt::format("{}: {}", where, object.error().message));
    store.init_apply(std::move(*object));
    return {};
  }

  k8s::Result<void> add_object(const std::string& where, const std::string& kind, Json& object) {
    World& world = out_.world;
    const bool cluster_scoped = kind == "Node" || kind == "ClusterPolicy" || kind == "SharingPolicy" ||
                                kind == "SharingRollout" || kind == "Config" || kind == "RuntimeClass" ||
                                kind == "CustomResourceDefinition" || kind == "GPUCluster" || kind == "DeviceClass" ||
                                kind == "ResourceSlice";
    fill_meta(kind, !cluster_scoped, object);
    // The kind is served even if no object of it exists.
    const bool our_crd =
        kind == "CustomResourceDefinition" && string_at(object["metadata"], "name") == "sharingpolicies.gpusharing.dev";
    world.policies_served = world.policies_served || our_crd;
    const std::string text = text_of(object);
    if (kind == "Node") return put(where, project_node(text), world.nodes);
    if (kind == "ConfigMap") return put(where, project_configmap(text), world.configmaps);
    if (kind == "DaemonSet") return put(where, project_daemonset(text), world.daemonsets);
    if (kind == "ControllerRevision") return put(where, project_controller_revision(text), world.revisions);
    if (kind == "ClusterPolicy") return put(where, project_clusterpolicy(text), world.clusterpolicies);
    if (kind == "GPUCluster") return put(where, project_gpu_cluster(text), world.gpu_clusters);
    if (kind == "DeviceClass") return put(where, project_device_class(text), world.device_classes);
    if (kind == "ResourceSlice") return put(where, project_resource_slice(text), world.resource_slices);
    if (kind == "Lease" && string_at(object["metadata"], "name") == kPartitionerLease)
      return put(where, project_partitioner_lease(text), world.partitioning.leases);
    if (is_kai_kind(kind, object)) return add_kai_object(where, kind, text);
    if (kind == "SharingPolicy" || kind == "SharingRollout") {
      world.policies_served = true;
      if (kind == "SharingPolicy") return put(where, project_sharing_policy(text), world.policies);
      return put(where, project_sharing_rollout(text), world.rollouts);
    }
    if (kind == "Pod") {
      if (auto added = pods_.add(text); !added)
        return k8s::fail(k8s::Reason::decode, fmt::format("{}: {}", where, added.error().message));
      return {};
    }
    out_.ignored.push_back(fmt::format("{}: kind {} is not read", where, kind));
    return {};
  }

  static bool is_kai_kind(const std::string& kind, const Json& object) {
    if (kind == "Config") return string_at(object, "apiVersion").starts_with("kai.scheduler/");
    if (kind == "Lease") return string_at(object["metadata"], "name") == kai::kBinderLease;
    return kind == "BindRequest" || kind == "Deployment" || kind == "RuntimeClass" ||
           kind == "CustomResourceDefinition";
  }

  k8s::Result<void> add_kai_object(const std::string& where, const std::string& kind, const std::string& text) {
    KaiWorld& kai = out_.world.kai;
    if (kind == "Lease") {
      auto lease = project_lease(text);
      if (!lease) return k8s::fail(k8s::Reason::decode, fmt::format("{}: {}", where, lease.error().message));
      kai.lookups.binder_lease = LookupResults::Lease{now_, true, lease->holder, lease->acquired};
      return {};
    }
    if (kind == "Deployment") return put(where, project_deployment(text), kai.deployments);
    if (kind == "RuntimeClass") {
      has_runtime_classes_ = true;
      return put(where, project_runtime_class(text), kai.runtime_classes);
    }
    if (kind == "CustomResourceDefinition") return put(where, project_kai_schema(text), kai.schemas);
    // Manifests name objects, not APIs: where one of KAI's kinds occurs, both are served.
    kai.configs_served = kai.bind_requests_served = true;
    if (kind == "Config") return put(where, project_kai_config(text), kai.configs);
    return put(where, project_bind_request(text), kai.bind_requests);
  }

  // The manifests are the whole cluster: so the consumers' ConfigMaps are also known.
  void place_config_maps() {
    KaiWorld& kai = out_.world.kai;
    for (const auto& [key, config_map] : out_.world.configmaps.all()) {
      auto devices = config_map->data.find(std::string(kai::kVisibleDevices));
      if (devices == config_map->data.end() || !devices->second) continue;
      LookupResults::Devices& found = kai.lookups.config_maps[key];
      found = {now_, true, *devices->second, {}};
      for (const k8s::OwnerReference& owner : config_map->meta.owners) found.owners.push_back(owner.uid);
    }
  }

  WallTime now_;
  LoadedManifests out_;
  ClusterPods pods_;
  bool has_runtime_classes_ = false;
};

}  // namespace

std::string json_of(const DocumentValue& value) {
  return text_of(to_json(value));
}

LoadedManifests load_readable_manifests(const std::vector<ManifestFile>& files, WallTime now,
                                        std::vector<std::string>& problems) {
  Loader loader(now);
  for (const ManifestFile& file : files) {
    if (auto added = loader.add_file(file); !added) problems.push_back(added.error().message);
  }
  return loader.finish();
}

k8s::Result<LoadedManifests> load_manifests(const std::vector<ManifestFile>& files, WallTime now) {
  Loader loader(now);
  for (const ManifestFile& file : files) {
    if (auto added = loader.add_file(file); !added) return std::unexpected(added.error());
  }
  return loader.finish();
}

k8s::Result<std::string> yaml_to_json(std::string_view text) {
  YamlLimits limits;
  limits.bytes = kMaxBytes;
  YamlStream stream(text, limits);
  auto document = stream.next();
  if (const auto& error = stream.error()) {
    return k8s::fail(k8s::Reason::decode,
                     fmt::format("line {}, column {}: {}", error->at.line, error->at.column, error->message));
  }
  if (!document) return std::string("null");
  auto json = document_to_json(*document);
  if (!json) return std::unexpected(json.error());
  return text_of(*json);
}

}  // namespace gso
