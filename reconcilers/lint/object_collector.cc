// See object_collector.h.
#include "reconcilers/lint/object_collector.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "reconcilers/cluster/manifest_object.h"
#include "reconcilers/model/json_access.h"

namespace gso {
namespace {

const DocumentValue* at_path(const DocumentValue& value, std::initializer_list<std::string_view> path) {
  const DocumentValue* at = &value;
  for (const std::string_view key : path) {
    at = at->find(key);
    if (at == nullptr) return nullptr;
  }
  return at;
}

// The field that decides which profile nodes get.
const DocumentValue* deciding_field(const DocumentValue& value, std::string_view kind) {
  return kind == "SharingPolicy" ? at_path(value, {"spec", "profile", "configMapKey"}) : nullptr;
}

// Where a ClusterPolicy names the plugin's ConfigMap and its default key.
void add_config_places(const DocumentValue& policy, ClusterObject& object) {
  if (const DocumentValue* name = at_path(policy, {"spec", "devicePlugin", "config", "name"}))
    object.config_name_at = name->at;
  if (const DocumentValue* key = at_path(policy, {"spec", "devicePlugin", "config", "default"}))
    object.config_default_at = key->at;
}

}  // namespace

const DocumentValue* ObjectCollector::name_of(const DocumentValue& value) const {
  return objects_ != nullptr ? at_path(value, {"metadata", "name"}) : nullptr;
}

void ObjectCollector::add(const DocumentValue& value, std::string_view kind, const std::string& source) {
  static constexpr std::array<std::string_view, 11> kKinds{
      "Node", "DaemonSet", "ConfigMap",    "ClusterPolicy", "ControllerRevision", "SharingPolicy",
      "Pod",  "Config",    "RuntimeClass", "DeviceClass",   "ResourceSlice"};
  const DocumentValue* name = name_of(value);
  if (name == nullptr || std::find(kKinds.begin(), kKinds.end(), kind) == kKinds.end()) return;
  const DocumentValue* field = deciding_field(value, kind);
  ClusterObject& object = append(kind, kind, *value.find("metadata"), to_json(value), source);
  const Position at = field != nullptr ? field->at : name->at;
  object.line = at.line;
  object.column = at.column;
  if (kind == "ClusterPolicy") add_config_places(value, object);
  if (kind == "Pod" && needs_other_objects(value)) {
    object.pod = std::make_shared<const DocumentValue>(value);
  }
}

void ObjectCollector::add_template(const DocumentValue& workload, std::string_view kind, const PodTemplate& of,
                                   const std::string& source) {
  const DocumentValue* name = name_of(workload);
  if (name == nullptr || !needs_other_objects(*of.pod)) return;
  const DocumentValue* metadata = workload.find("metadata");
  nlohmann::json pod = to_json(*of.pod);
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  pod["metadata"]["name"] = name->text;
  if (const auto ns = metadata->string_at("namespace"); !ns.empty()) {
    pod["metadata"]["namespace"] = ns;
  }
  ClusterObject& object = append("Pod", kind, *metadata, std::move(pod), source);
  object.line = of.pod->at.line;
  object.column = of.pod->at.column;
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

}  // namespace gso
