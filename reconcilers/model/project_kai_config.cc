// Config, the CRDs' schemas, Deployment and RuntimeClass: JSON -> projected value.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "reconcilers/model/json_access.h"
#include "reconcilers/model/json_fields.h"
#include "reconcilers/model/kai_objects.h"

namespace gso {
namespace {

using json::Fields;
using json::Value;

bool read_count_of_items(Fields& fields, Value value, std::string_view path, std::int64_t& out) {
  return fields.array(value, path, [&](Value) { return ++out > 0; });
}

std::optional<std::string> text_of(const std::string& value) {
  return value.empty() ? std::nullopt : std::optional(value);
}
std::optional<std::string> text_of(const std::optional<std::string>& value) {
  return value;
}
std::optional<std::string> text_of(const std::optional<bool>& value) {
  return value ? std::optional<std::string>(*value ? "true" : "false") : std::nullopt;
}
std::optional<std::string> text_of(const std::optional<std::int64_t>& value) {
  return value ? std::optional(std::to_string(*value)) : std::nullopt;
}

// A field of kai-config. Of those with a `text`, people patch the value by hand: their presence in the schema, and who
// wrote them, is read as well.
struct ConfigField : json::Row<KaiConfig> {
  std::optional<std::string> (*text)(const KaiConfig&) = nullptr;
};

template <auto kMember>
constexpr ConfigField followed(std::string_view path) {
  return {json::row<kMember>(path), [](const KaiConfig& config) { return text_of(config.*kMember); }};
}

constexpr ConfigField kConfig[] = {
    {json::row<&KaiConfig::ns>("spec.namespace")},
    followed<&KaiConfig::gpu_sharing>("spec.admission.gpuSharing"),
    followed<&KaiConfig::pod_runtime_class>("spec.admission.gpuPodRuntimeClassName"),
    followed<&KaiConfig::fraction_runtime_class>("spec.admission.gpuFractionRuntimeClassName"),
    {json::row<&KaiConfig::scheduler_name>("spec.global.schedulerName")},
    {json::row<&KaiConfig::queue_label_key>("spec.global.queueLabelKey")},
    followed<&KaiConfig::gpu_sharing_mode>("spec.global.gpuSharingMode"),
    {json::row_by<json::read_presence, &KaiConfig::misspelt_pull_secret>("spec.global.imagesPullSecret")},
    {json::row_by<read_count_of_items, &KaiConfig::pull_secrets>("spec.global.additionalImagePullSecrets")},
    {json::row<&KaiConfig::scale_namespace>("spec.nodeScaleAdjuster.args.nodeScaleNamespace")},
    followed<&KaiConfig::reservation_namespace>("spec.binder.resourceReservation.namespace"),
    followed<&KaiConfig::reservation_app_label>("spec.binder.resourceReservation.appLabel"),
    followed<&KaiConfig::reservation_runtime_class>("spec.binder.resourceReservation.runtimeClassName"),
    followed<&KaiConfig::allocation_timeout>("spec.binder.resourceReservation.allocationTimeout"),
    followed<&KaiConfig::volume_binding_timeout>("spec.binder.volumeBindingTimeoutSeconds"),
};

// Fields whose presence in a schema or whose writer is read: of kai-config, and of BindRequests.
const std::vector<std::string_view>& followed_fields() {
  static const std::vector<std::string_view> kFields = [] {
    std::vector<std::string_view> out{"spec.selectedGPUGroups", "spec.selectedFractionalGpuGroups"};
    for (const ConfigField& field : kConfig)
      if (field.text != nullptr) out.push_back(field.path);
    return out;
  }();
  return kFields;
}

// The value at a dotted path; `step` finds each part in the value before it. null: it is not there.
template <class Step>
const nlohmann::json* value_at(const nlohmann::json* at, std::string_view path, Step step) {
  while (at != nullptr && !path.empty()) {
    const std::string_view part = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(path.size(), part.size() + 1));
    at = step(*at, part);
  }
  return at;
}

// fieldsV1 names the field.
bool owns(const nlohmann::json& fields, std::string_view path) {
  return value_at(&fields, path, [](const nlohmann::json& at, std::string_view part) {
           return member_at(at, std::string("f:").append(part));
         }) != nullptr;
}

// The schema describes the field.
bool describes(const nlohmann::json& schema, std::string_view path) {
  const nlohmann::json* found = value_at(&schema, path, [](const nlohmann::json& at, std::string_view part) {
    const nlohmann::json* properties = member_at(at, "properties");
    return properties == nullptr ? nullptr : member_at(*properties, part);
  });
  return found != nullptr && found->is_object();
}

// One entry of managedFields.
struct Manager {
  std::string name;
  std::string time;
  nlohmann::json owned;
};
constexpr json::Row<Manager> kManager[] = {
    json::row<&Manager::name>("metadata.managedFields[].manager"),
    json::row<&Manager::time>("metadata.managedFields[].time"),
    json::row_by<json::read_json, &Manager::owned>("metadata.managedFields[].fieldsV1"),
};

// The newest entry that owns a field wrote it last.
bool read_managers(Fields& fields, Value value, std::string_view path, KaiConfig& out) {
  std::map<std::string, std::string> newest;
  return fields.array(value, path, [&](Value item) {
    Manager entry;
    const bool read = json::read_rows(fields, item, "metadata.managedFields[].", kManager, entry);
    for (const std::string_view field : followed_fields()) {
      const std::string name(field);
      // RFC 3339 in UTC: text order is time order.
      if (!entry.owned.is_object() || !owns(entry.owned, field) || newest[name] > entry.time) continue;
      newest[name] = entry.time;
      out.managers[name] = entry.name;
    }
    return read;
  });
}

struct Version {
  std::string name;
  std::optional<bool> served;
  nlohmann::json schema;
};
struct ReadSchema {
  KaiSchema schema;
  std::vector<Version> versions;
};
constexpr json::Row<ReadSchema> kSchema[] = {
    json::list<&ReadSchema::versions>("spec.versions"),
    json::row<&ReadSchema::versions, &Version::name>("spec.versions[].name"),
    json::row<&ReadSchema::versions, &Version::served>("spec.versions[].served"),
    json::row_by<json::read_json, &ReadSchema::versions, &Version::schema>("spec.versions[].schema"),
};

// The version in which its objects are read; fields of other versions are not visible in them.
std::string_view version_read(std::string_view crd) {
  return crd == kai::kBindRequestCrd ? "v1alpha2" : "v1";
}

// Deployment: the condition Available.
bool read_available(Fields& fields, Value value, std::string_view path, Deployment& out) {
  return json::read_conditions(fields, value, path, [&](const json::Condition& condition) {
    if (condition.type != "Available") return;
    out.available_condition = condition.status == "True";
    out.available_since = condition.since;
  });
}

constexpr json::Row<Deployment> kDeployment[] = {
    json::row<&Deployment::replicas>("spec.replicas"),
    json::row<&Deployment::observed_generation>("status.observedGeneration"),
    json::row<&Deployment::updated>("status.updatedReplicas"),
    json::row<&Deployment::available>("status.availableReplicas"),
    {"status.conditions", read_available},
};

}  // namespace

k8s::Result<KaiConfig> project_kai_config(std::string_view text) {
  std::vector<json::Row<KaiConfig>> rows(std::begin(kConfig), std::end(kConfig));
  rows.push_back({"metadata.managedFields", read_managers});
  return json::project<KaiConfig>("Config", text, {true, json::keeps_own_annotation}, rows);
}

std::map<std::string, std::string> followed_values(const KaiConfig& config) {
  std::map<std::string, std::string> out;
  for (const ConfigField& field : kConfig)
    if (auto value = field.text != nullptr ? field.text(config) : std::nullopt)
      out[std::string(field.path)] = *std::move(value);
  return out;
}

k8s::Result<KaiSchema> project_kai_schema(std::string_view text) {
  ReadSchema out;
  auto read = json::read_object("CustomResourceDefinition", text, {}, kSchema, out.schema.meta, out);
  if (!read) return std::unexpected(read.error());
  for (const Version& version : out.versions) {
    if (!version.served.value_or(true) || version.name != version_read(out.schema.meta.name)) continue;
    const nlohmann::json& schema = object_at(version.schema, "openAPIV3Schema");
    for (const std::string_view field : followed_fields())
      if (describes(schema, field)) out.schema.fields.emplace(field);
  }
  return std::move(out.schema);
}

k8s::Result<Deployment> project_deployment(std::string_view text) {
  return json::project<Deployment>("Deployment", text, {}, kDeployment);
}

k8s::Result<RuntimeClass> project_runtime_class(std::string_view text) {
  return json::project<RuntimeClass>("RuntimeClass", text, {}, std::span<const json::Row<RuntimeClass>>());
}

}  // namespace gso
