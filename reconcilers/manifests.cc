#include "reconcilers/manifests.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "reconcilers/fleet.h"
#include "reconcilers/labels.h"
#include "reconcilers/model/project.h"
#include "reconcilers/profile/document_value.h"
#include "reconcilers/profile/yaml_node.h"

namespace gso {
namespace {

using nlohmann::json;

// Dumps of whole clusters are big; one object is not.
constexpr YamlLimits kLimits{.bytes = std::size_t{512} << 20, .depth = 500};

json to_json(const DocumentValue& value) {
  switch (value.kind) {
    case DocumentValue::Kind::null: return nullptr;
    case DocumentValue::Kind::boolean: return value.boolean;
    case DocumentValue::Kind::number: return json::parse(value.text, nullptr, false);
    case DocumentValue::Kind::string: return value.text;
    case DocumentValue::Kind::array: {
      json array = json::array();
      for (const DocumentValue& item : value.items) array.push_back(to_json(item));
      return array;
    }
    case DocumentValue::Kind::object: {
      json object = json::object();
      for (const DocumentMember& member : value.members) object[member.key] = to_json(member.value);
      return object;
    }
  }
  return nullptr;
}

k8s::Result<json> to_json(const YamlDocument& document) {
  if (document.root == nullptr) return json(nullptr);
  std::vector<Diagnostic> diagnostics;
  const DocumentValue value = to_document_value(*document.root, DecodeTarget::none, diagnostics);
  for (const Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.severity == Diagnostic::Severity::error) {
      return k8s::fail(k8s::Reason::decode, fmt::format("line {}: {}", diagnostic.line, diagnostic.message));
    }
  }
  return to_json(value);
}

// Text that a JSON dump wrote is read as JSON: the same objects at a tenth of the time.
bool looks_like_json(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{';
}

// The documents of one file, in order.
k8s::Result<std::vector<json>> read_documents(const ManifestFile& file) {
  std::vector<json> documents;
  if (looks_like_json(file.text)) {
    json document = json::parse(file.text, nullptr, false);
    if (!document.is_discarded()) {
      documents.push_back(std::move(document));
      return documents;
    }
  }
  YamlStream stream(file.text, kLimits);
  while (std::optional<YamlDocument> document = stream.next()) {
    k8s::Result<json> value = to_json(*document);
    if (!value) {
      return k8s::fail(k8s::Reason::decode, fmt::format("{}#{}: {}", file.name, documents.size(), value.error().message));
    }
    documents.push_back(*std::move(value));
  }
  if (stream.error()) {
    return k8s::fail(k8s::Reason::decode, fmt::format("{}#{}: line {}, column {}: {}", file.name, documents.size(),
                                                      stream.error()->at.line, stream.error()->at.column,
                                                      stream.error()->message));
  }
  return documents;
}

// What a server would have filled in, so that hand-written manifests work.
void complete(json& object, const std::string& kind) {
  json& meta = object["metadata"];
  const std::string ns = meta.value("namespace", "");
  if (!meta.contains("uid")) meta["uid"] = fmt::format("{}/{}/{}", kind, ns, meta.value("name", ""));
  if (!meta.contains("resourceVersion")) meta["resourceVersion"] = "1";
  if (!meta.contains("creationTimestamp") || meta["creationTimestamp"].is_null()) {
    meta["creationTimestamp"] = "1970-01-01T00:00:00Z";
  }
}

class Loader {
 public:
  explicit Loader(WallTime now) : now_(now) {}

  k8s::Result<void> add(const std::string& where, json object) {
    if (object.is_null()) return {};
    if (!object.is_object() || !object.contains("kind") || !object["kind"].is_string()) {
      return k8s::fail(k8s::Reason::decode, where + ": this is no Kubernetes object: it has no kind");
    }
    const std::string kind = object["kind"];
    if (object.contains("items") && object["items"].is_array()) return add_list(where, kind, std::move(object["items"]));
    const std::string version = object.value("apiVersion", "");
    if (!object.contains("metadata") || !object["metadata"].is_object() ||
        !object["metadata"].contains("name")) {
      return k8s::fail(k8s::Reason::decode, fmt::format("{}: {} without metadata.name", where, kind));
    }
    complete(object, kind);
    return place(where, kind, version, object.dump());
  }

  k8s::Result<LoadedManifests> finish() {
    World& world = loaded_.world;
    std::set<std::string> daemonsets;
    for (const auto& [key, daemonset] : world.daemonsets.all()) daemonsets.insert(daemonset->meta.uid);
    init_all();
    for (Pod& pod : pods_) {
      const k8s::OwnerReference* owner = pod.meta.controller();
      const bool operand = owner != nullptr && owner->kind == "DaemonSet" && daemonsets.contains(std::string(owner->uid.view()));
      if (operand) operand_pods_.push_back(pod);
    }
    for (const Pod& pod : operand_pods_) world.operand_pods.init_apply(pod);
    world.operand_pods.init_done();
    for (Pod& pod : pods_) {
      if (pod.node_name.empty() || !is_gpu_consumer(pod, world)) continue;
      loaded_.consumers[std::string(pod.node_name.view())].pods.push_back(std::move(pod));
    }
    // A manifest dump is the whole truth: a node without consumers in it has none.
    for (const auto& [key, node] : world.nodes.all()) loaded_.consumers[key.name].listed_at = now_;
    return std::move(loaded_);
  }

  void begin() {
    World& world = loaded_.world;
    world.nodes.init();
    world.daemonsets.init();
    world.configmaps.init();
    world.revisions.init();
    world.clusterpolicies.init();
    world.policies.init();
    world.rollouts.init();
    world.operand_pods.init();
  }

  // DaemonSets must be readable before pods are sorted into operands and consumers.
  void daemonsets_done() { loaded_.world.daemonsets.init_done(); }

 private:
  void init_all() {
    World& world = loaded_.world;
    world.nodes.init_done();
    world.configmaps.init_done();
    world.revisions.init_done();
    world.clusterpolicies.init_done();
    world.policies.init_done();
    world.rollouts.init_done();
  }

  k8s::Result<void> add_list(const std::string& where, const std::string& kind, json items) {
    // kubectl's List holds whole objects; a server's NodeList leaves apiVersion and kind out of its items.
    const std::string item_kind = kind == "List" || !kind.ends_with("List") ? "" : kind.substr(0, kind.size() - 4);
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (items[i].is_object() && !items[i].contains("kind") && !item_kind.empty()) items[i]["kind"] = item_kind;
      k8s::Result<void> added = add(fmt::format("{}[{}]", where, i), std::move(items[i]));
      if (!added) return added;
    }
    return {};
  }

  template <class T>
  k8s::Result<void> keep(const std::string& where, k8s::Result<T> object, const std::function<void(T)>& store) {
    if (!object) return k8s::fail(k8s::Reason::decode, where + ": " + object.error().message);
    store(*std::move(object));
    return {};
  }

  k8s::Result<void> place(const std::string& where, const std::string& kind, const std::string& version,
                          const std::string& text) {
    World& world = loaded_.world;
    if (kind == "Node") return keep<Node>(where, project_node(text), [&](Node o) { world.nodes.init_apply(std::move(o)); });
    if (kind == "Pod") return keep<Pod>(where, project_pod(text), [&](Pod o) { pods_.push_back(std::move(o)); });
    if (kind == "ConfigMap") {
      return keep<ConfigMap>(where, project_configmap(text), [&](ConfigMap o) { world.configmaps.init_apply(std::move(o)); });
    }
    if (kind == "DaemonSet") {
      return keep<DaemonSet>(where, project_daemonset(text), [&](DaemonSet o) { world.daemonsets.init_apply(std::move(o)); });
    }
    if (kind == "ControllerRevision") {
      return keep<ControllerRevision>(where, project_controller_revision(text),
                                      [&](ControllerRevision o) { world.revisions.init_apply(std::move(o)); });
    }
    if (kind == "ClusterPolicy" && (version.empty() || version.starts_with("nvidia.com/"))) {
      return keep<ClusterPolicy>(where, project_clusterpolicy(text),
                                 [&](ClusterPolicy o) { world.clusterpolicies.init_apply(std::move(o)); });
    }
    if (kind == "SharingPolicy") {
      world.policies_served = true;
      return keep<SharingPolicy>(where, project_sharing_policy(text),
                                 [&](SharingPolicy o) { world.policies.init_apply(std::move(o)); });
    }
    if (kind == "SharingRollout") {
      world.policies_served = true;
      return keep<SharingRollout>(where, project_sharing_rollout(text),
                                  [&](SharingRollout o) { world.rollouts.init_apply(std::move(o)); });
    }
    loaded_.ignored.push_back(fmt::format("{}: kind {} is not read", where, kind));
    return {};
  }

  WallTime now_;
  LoadedManifests loaded_;
  std::vector<Pod> pods_;
  std::vector<Pod> operand_pods_;
};

}  // namespace

k8s::Result<LoadedManifests> load_manifests(const std::vector<ManifestFile>& files, WallTime now) {
  Loader loader(now);
  loader.begin();
  for (const ManifestFile& file : files) {
    k8s::Result<std::vector<json>> documents = read_documents(file);
    if (!documents) return std::unexpected(documents.error());
    for (std::size_t i = 0; i < documents->size(); ++i) {
      k8s::Result<void> added = loader.add(fmt::format("{}#{}", file.name, i), std::move((*documents)[i]));
      if (!added) return std::unexpected(added.error());
    }
  }
  loader.daemonsets_done();
  return loader.finish();
}

k8s::Result<std::string> yaml_to_json(std::string_view text) {
  YamlStream stream(text, kLimits);
  const std::optional<YamlDocument> document = stream.next();
  if (stream.error()) {
    return k8s::fail(k8s::Reason::decode, fmt::format("line {}, column {}: {}", stream.error()->at.line,
                                                      stream.error()->at.column, stream.error()->message));
  }
  if (!document) return std::string("null");
  k8s::Result<json> value = to_json(*document);
  if (!value) return std::unexpected(value.error());
  return value->dump();
}

}  // namespace gso
