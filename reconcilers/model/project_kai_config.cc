// Config, the CRDs' schemas, Deployment and RuntimeClass: JSON -> projected value.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "reconcilers/model/json_fields.h"
#include "reconcilers/model/kai_objects.h"

namespace gso {
namespace {

using json::Fields;
using json::Value;

bool read_presence(Fields& /*fields*/, Value value, std::string_view /*path*/, bool& out) {
  out = !Fields::is_null(value);
  return true;
}

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
    {json::row_by<read_presence, &KaiConfig::misspelt_pull_secret>("spec.global.imagesPullSecret")},
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
    for (const ConfigField& field : kConfig) {
      if (field.text != nullptr) out.push_back(field.path);
    }
    return out;
  }();
  return kFields;
}

// True when fieldsV1 names a field given by its dotted path.
bool owns(const nlohmann::json& fields, std::string_view path) {
  const nlohmann::json* at = &fields;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(path.size(), part.size() + 1));
    if (!at->is_object()) return false;
    auto it = at->find("f:" + std::string(part));
    if (it == at->end()) return false;
    at = &*it;
  }
  return true;
}

// The newest entry that owns a field wrote it last.
bool read_managers(Fields& fields, Value value, std::string_view /*path*/, KaiConfig& out) {
  std::map<std::string, std::string> newest;
  return fields.array(value, "metadata.managedFields", [&](Value entry) {
    std::string manager;
    std::string time;
    nlohmann::json owned;
    const bool read = fields.object(entry, "metadata.managedFields", [&](std::string_view key, Value inner) {
      if (key == "manager") return fields.text(inner, "managedFields.manager", manager);
      if (key == "time") return fields.text(inner, "managedFields.time", time);
      if (key != "fieldsV1") return true;
      simdjson::ondemand::object object;
      std::string_view raw;
      if (inner.get_object().get(object) != simdjson::SUCCESS || object.raw_json().get(raw) != simdjson::SUCCESS) {
        return fields.fail("managedFields.fieldsV1", "an object");
      }
      owned = nlohmann::json::parse(raw, nullptr, false);
      return true;
    });
    for (const std::string_view field : followed_fields()) {
      const std::string name(field);
      // RFC 3339 in UTC: text order is time order.
      if (!owned.is_object() || !owns(owned, field) || newest[name] > time) continue;
      newest[name] = time;
      out.managers[name] = manager;
    }
    return read;
  });
}

// Which of followed_fields() are in `properties`, the schema of the field at `path`.
void walk_schema(const nlohmann::json& schema, const std::string& path, KaiSchema& out) {
  for (const std::string_view field : followed_fields()) {
    if (field == path) out.fields.insert(path);
  }
  auto properties = schema.find("properties");
  if (properties == schema.end() || !properties->is_object()) return;
  for (const auto& [name, inner] : properties->items()) {
    const std::string below = path.empty() ? name : fmt::format("{}.{}", path, name);
    const bool wanted = std::ranges::any_of(followed_fields(), [&](std::string_view field) {
      return field.starts_with(below) && (field.size() == below.size() || field[below.size()] == '.');
    });
    if (wanted && inner.is_object()) walk_schema(inner, below, out);
  }
}

bool read_schema(Fields& fields, Value value, KaiSchema& out) {
  simdjson::ondemand::object object;
  std::string_view raw;
  if (value.get_object().get(object) != simdjson::SUCCESS || object.raw_json().get(raw) != simdjson::SUCCESS) {
    return fields.fail("spec.versions.schema", "an object");
  }
  const auto parsed = nlohmann::json::parse(raw, nullptr, false);
  if (parsed.is_object() && parsed.contains("openAPIV3Schema") && parsed["openAPIV3Schema"].is_object()) {
    walk_schema(parsed["openAPIV3Schema"], "", out);
  }
  return true;
}

// Fields by version, of those that are served.
using Versions = std::map<std::string, std::set<std::string>>;

bool read_versions(Fields& fields, Value value, Versions& out) {
  return fields.array(value, "spec.versions", [&](Value version) {
    std::string name;
    std::optional<bool> served;
    KaiSchema found;
    const bool read = fields.object(version, "spec.versions", [&](std::string_view key, Value inner) {
      if (key == "name") return fields.text(inner, "spec.versions.name", name);
      if (key == "served") return fields.flag(inner, "spec.versions.served", served);
      return key == "schema" ? read_schema(fields, inner, found) : true;
    });
    if (served.value_or(true)) out[name] = std::move(found.fields);
    return read;
  });
}

// The version in which its objects are read; fields of other versions are not visible in them.
std::string_view version_read(std::string_view crd) {
  return crd == kai::kBindRequestCrd ? "v1alpha2" : "v1";
}

// Deployment: the condition Available.
bool read_available(Fields& fields, Value value, std::string_view path, Deployment& out) {
  return fields.array(value, path, [&](Value item) {
    std::string type;
    std::string status;
    std::optional<WallTime> since;
    const bool read = fields.object(item, path, [&](std::string_view key, Value inner) {
      if (key == "type") return fields.text(inner, "status.conditions.type", type);
      if (key == "status") return fields.text(inner, "status.conditions.status", status);
      if (key == "lastTransitionTime") return fields.time(inner, "status.conditions.lastTransitionTime", since);
      return true;
    });
    if (type == "Available") {
      out.available_condition = status == "True";
      out.available_since = since;
    }
    return read;
  });
}

constexpr json::Row<Deployment> kDeployment[] = {
    json::row<&Deployment::replicas>("spec.replicas"),
    json::row<&Deployment::observed_generation>("status.observedGeneration"),
    json::row<&Deployment::updated>("status.updatedReplicas"),
    json::row<&Deployment::available>("status.availableReplicas"),
    {"status.conditions", read_available},
};

constexpr json::Row<Lease> kLease[] = {json::row<&Lease::holder>("spec.holderIdentity"),
                                       json::row<&Lease::acquired>("spec.acquireTime")};

}  // namespace

k8s::Result<KaiConfig> project_kai_config(std::string_view text) {
  std::vector<json::Row<KaiConfig>> rows(std::begin(kConfig), std::end(kConfig));
  rows.push_back({"metadata.managedFields", read_managers});
  return json::project<KaiConfig>("Config", text, {true, json::keeps_own_annotation}, rows);
}

std::map<std::string, std::string> followed_values(const KaiConfig& config) {
  std::map<std::string, std::string> out;
  for (const ConfigField& field : kConfig) {
    if (auto value = field.text != nullptr ? field.text(config) : std::nullopt)
      out[std::string(field.path)] = *std::move(value);
  }
  return out;
}

k8s::Result<KaiSchema> project_kai_schema(std::string_view text) {
  KaiSchema out;
  Versions versions;
  json::Document document("CustomResourceDefinition", text);
  auto read = document.read(out.meta, [&](Fields& fields, std::string_view key, Value value) {
    if (key == "metadata") return json::read_meta(fields, value, {}, out.meta);
    if (key != "spec") return true;
    return fields.object(value, "spec", [&](std::string_view field, Value inner) {
      return field == "versions" ? read_versions(fields, inner, versions) : true;
    });
  });
  if (!read) return std::unexpected(read.error());
  out.fields = std::move(versions[std::string(version_read(out.meta.name))]);
  return out;
}

k8s::Result<Deployment> project_deployment(std::string_view text) {
  return json::project<Deployment>("Deployment", text, {}, kDeployment);
}

k8s::Result<RuntimeClass> project_runtime_class(std::string_view text) {
  return json::project<RuntimeClass>("RuntimeClass", text, {}, std::span<const json::Row<RuntimeClass>>());
}

k8s::Result<Lease> project_lease(std::string_view text) {
  return json::project<Lease>("Lease", text, {}, kLease);
}

}  // namespace gso
