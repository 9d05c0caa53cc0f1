// See objects.h.
#include "reconcilers/lint/objects.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reconcilers/lint/checks.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/profile/field_names.h"

namespace gso {
namespace {

constexpr std::string_view kSharingPolicyKind = "SharingPolicy";

// A kind that lint knows.
struct KnownKind {
  std::string_view kind;
  std::string_view group;  // Empty: the core group.
};
constexpr auto kKnownKinds = std::to_array<KnownKind>({{"Pod", ""},
                                                       {"ConfigMap", ""},
                                                       {"Node", ""},
                                                       {"List", ""},
                                                       {"PodTemplate", ""},
                                                       {"ReplicationController", ""},
                                                       {"Deployment", "apps"},
                                                       {"StatefulSet", "apps"},
                                                       {"DaemonSet", "apps"},
                                                       {"ReplicaSet", "apps"},
                                                       {"ControllerRevision", "apps"},
                                                       {"Job", "batch"},
                                                       {"CronJob", "batch"},
                                                       {"RuntimeClass", "node.k8s.io"},
                                                       {kSharingPolicyKind, "gpusharing.dev"},
                                                       {"SharingRollout", "gpusharing.dev"},
                                                       {"ClusterPolicy", "nvidia.com"}});

const KnownKind* find_known(std::string_view kind) {
  const auto found = std::ranges::find(kKnownKinds, kind, &KnownKind::kind);
  return found == kKnownKinds.end() ? nullptr : &*found;
}

// Any object with containers in its spec that stands under a field named like a template: Deployment, Job, CronJob,
// PyTorchJob, RayCluster, … have it at different places.
void find_templates(const DocumentValue& value, const std::string& path, bool named, std::vector<PodTemplate>& out) {
  const DocumentValue* containers = named ? find_path(value, {"spec", "containers"}) : nullptr;
  if (containers != nullptr && containers->is_array()) {
    out.push_back({&value, path + "."});
    return;
  }
  for (const DocumentMember& member : value.members) {
    const bool is_template = member.key.ends_with("emplate");
    find_templates(member.value, path.empty() ? member.key : path + "." + member.key, is_template, out);
  }
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    find_templates(value.items[i], fmt::format("{}[{}]", path, i), named, out);
  }
}

}  // namespace

bool is_manifest(const DocumentValue& value) {
  const std::string_view kind = value.string_at("kind");
  return !kind.empty() &&
         (value.find("apiVersion") != nullptr || value.find("metadata") != nullptr || find_known(kind) != nullptr);
}

bool lacks_kind(const DocumentValue& value) {
  const DocumentValue* metadata = value.find("metadata");
  return value.find("kind") == nullptr && value.find("apiVersion") != nullptr && metadata != nullptr &&
         metadata->is_object();
}

Diagnostic kind_missing(const DocumentValue& object) {
  return {Severity::error, "KindMissing", "kind", object.at, "the object has no kind; write its kind"};
}

bool is_of_other_group(const DocumentValue& object) {
  const KnownKind* known = find_known(object.string_at("kind"));
  if (known == nullptr || known->kind == kSharingPolicyKind) return false;
  const std::string_view version = object.string_at("apiVersion");
  const std::string_view group = version.substr(0, version.contains('/') ? version.find('/') : 0);
  // Any owner can add kinds to a group with a domain of his own. The others are Kubernetes' own.
  return group != known->group && group.contains('.') && !group.ends_with(".k8s.io");
}

bool is_known_object(const DocumentValue& object, std::string_view kind) {
  return find_known(kind) != nullptr && !is_of_other_group(object);
}

std::vector<PodTemplate> pod_templates(const DocumentValue& object) {
  std::vector<PodTemplate> out;
  if (const DocumentValue* spec = object.find("spec")) find_templates(*spec, "spec", false, out);
  if (object.string_at("kind") == "PodTemplate") {
    if (const DocumentValue* pod = object.find("template")) find_templates(*pod, "template", true, out);
  }
  return out;
}

const DocumentValue* ObjectCollector::name_of(const DocumentValue& value) const {
  return objects_ != nullptr ? find_path(value, {"metadata", "name"}) : nullptr;
}

void ObjectCollector::add(const DocumentValue& value, std::string_view kind, const std::string& source) {
  static constexpr std::array<std::string_view, 11> kKinds{
      "Node", "DaemonSet", "ConfigMap",    "ClusterPolicy", "ControllerRevision", kSharingPolicyKind,
      "Pod",  "Config",    "RuntimeClass", "DeviceClass",   "ResourceSlice"};
  const DocumentValue* name = name_of(value);
  if (name == nullptr || std::ranges::find(kKinds, kind) == kKinds.end()) return;
  // The field that decides which profile nodes get.
  const DocumentValue* key =
      kind == kSharingPolicyKind ? find_path(value, {"spec", "profile", "configMapKey"}) : nullptr;
  ClusterObject& object = append(kind, kind, *value.find("metadata"), to_json(value), source);
  object.at = key != nullptr ? key->at : name->at;
  if (const DocumentValue* config = find_path(value, {"spec", "devicePlugin", "config"});
      kind == "ClusterPolicy" && config)
    object.config = std::make_shared<const DocumentValue>(*config);
  if (kind == "Pod" && needs_other_objects(value)) object.pod = std::make_shared<const DocumentValue>(value);
}

void ObjectCollector::add_template(const DocumentValue& workload, std::string_view kind, const PodTemplate& of,
                                   const std::string& source) {
  const DocumentValue* name = name_of(workload);
  if (name == nullptr || !needs_other_objects(*of.pod)) return;
  const DocumentValue* metadata = workload.find("metadata");
  nlohmann::json pod = to_json(*of.pod);
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  if (!pod["metadata"].is_object()) pod["metadata"] = nlohmann::json::object();
  pod["metadata"]["name"] = name->text;
  if (const auto ns = metadata->string_at("namespace"); !ns.empty()) pod["metadata"]["namespace"] = ns;
  ClusterObject& object = append("Pod", kind, *metadata, std::move(pod), source);
  object.at = of.pod->at;
  object.pod = std::make_shared<const DocumentValue>(*of.pod);
  object.pod_path = of.path;
}

ClusterObject& ObjectCollector::append(std::string_view kind, std::string_view document_kind,
                                       const DocumentValue& metadata, nlohmann::json json, const std::string& source) {
  fill_metadata(std::string(kind), json);
  ClusterObject& object = objects_->emplace_back();
  object.source = source;
  object.kind = kind;
  object.document_kind = document_kind;
  object.ns = metadata.string_at("namespace");
  object.name = metadata.find("name")->text;
  const auto version = json.find("apiVersion");
  object.api_version = version != json.end() && version->is_string() ? version->get<std::string>() : std::string();
  object.json = dump(json);
  return object;
}

LoadedManifests load_objects(const std::vector<ClusterObject>& objects, bool (*wanted)(std::string_view kind)) {
  std::vector<ManifestObject> read;
  for (const ClusterObject& each : objects) {
    if (wanted(each.kind)) read.push_back({each.source, each.kind, each.api_version, each.name, each.json});
  }
  std::vector<std::string> problems;
  return load_readable_objects(read, WallTime{}, problems);
}

DocumentIndex::DocumentIndex(std::vector<LintedDocument>& documents) {
  for (LintedDocument& each : documents) {
    if (each.key.empty()) documents_.try_emplace({each.source, each.kind, each.name}, &each);
  }
}

LintedDocument* DocumentIndex::find(const ClusterObject& object) const {
  const auto found = documents_.find({object.source, object.document_kind, object.name});
  return found == documents_.end() ? nullptr : found->second;
}

}  // namespace gso
