// Config, the CRDs' schemas, Deployment and RuntimeClass: JSON -> projected value.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "reconcilers/model/json_fields.h"
#include "reconcilers/model/kai_objects.h"

namespace gso {
namespace {

using json::Fields;
using json::Value;

// Fields whose presence in the schema or whose writer is read.
constexpr std::array<std::string_view, 11> kFields = {
    "spec.admission.gpuSharing",
    "spec.global.gpuSharingMode",
    "spec.admission.gpuPodRuntimeClassName",
    "spec.admission.gpuFractionRuntimeClassName",
    "spec.binder.resourceReservation.runtimeClassName",
    "spec.binder.resourceReservation.namespace",
    "spec.binder.resourceReservation.appLabel",
    "spec.binder.resourceReservation.allocationTimeout",
    "spec.binder.volumeBindingTimeoutSeconds",
    "spec.selectedGPUGroups",
    "spec.selectedFractionalGpuGroups",
};

bool read_reservation(Fields& fields, Value value, KaiConfig& out) {
  return fields.object(value, "spec.binder.resourceReservation", [&](std::string_view key, Value inner) {
    if (key == "namespace") return fields.text(inner, "resourceReservation.namespace", out.reservation_namespace);
    if (key == "appLabel") return fields.text(inner, "resourceReservation.appLabel", out.reservation_app_label);
    if (key == "runtimeClassName") {
      return fields.text(inner, "resourceReservation.runtimeClassName", out.reservation_runtime_class);
    }
    if (key == "allocationTimeout") {
      return fields.number(inner, "resourceReservation.allocationTimeout", out.allocation_timeout);
    }
    return true;
  });
}

bool read_admission(Fields& fields, Value value, KaiConfig& out) {
  return fields.object(value, "spec.admission", [&](std::string_view key, Value inner) {
    if (key == "gpuSharing") return fields.flag(inner, "spec.admission.gpuSharing", out.gpu_sharing);
    if (key == "gpuPodRuntimeClassName") {
      return fields.text(inner, "spec.admission.gpuPodRuntimeClassName", out.pod_runtime_class);
    }
    if (key == "gpuFractionRuntimeClassName") {
      return fields.text(inner, "spec.admission.gpuFractionRuntimeClassName", out.fraction_runtime_class);
    }
    return true;
  });
}

bool read_global(Fields& fields, Value value, KaiConfig& out) {
  return fields.object(value, "spec.global", [&](std::string_view key, Value inner) {
    if (key == "schedulerName") return fields.text(inner, "spec.global.schedulerName", out.scheduler_name);
    if (key == "queueLabelKey") return fields.text(inner, "spec.global.queueLabelKey", out.queue_label_key);
    if (key == "gpuSharingMode") return fields.text(inner, "spec.global.gpuSharingMode", out.gpu_sharing_mode);
    if (key == "imagesPullSecret" && !Fields::is_null(inner)) out.misspelt_pull_secret = true;
    if (key == "additionalImagePullSecrets") {
      return fields.array(inner, "spec.global.additionalImagePullSecrets",
                          [&](Value) { return ++out.pull_secrets > 0; });
    }
    return true;
  });
}

bool read_scaling(Fields& fields, Value value, KaiConfig& out) {
  return fields.object(value, "spec.nodeScaleAdjuster", [&](std::string_view key, Value inner) {
    if (key != "args") return true;
    return fields.object(inner, "spec.nodeScaleAdjuster.args", [&](std::string_view field, Value item) {
      return field == "nodeScaleNamespace" ? fields.text(item, "args.nodeScaleNamespace", out.scale_namespace) : true;
    });
  });
}

bool read_spec(Fields& fields, Value value, KaiConfig& out) {
  return fields.object(value, "spec", [&](std::string_view key, Value inner) {
    if (key == "namespace") return fields.text(inner, "spec.namespace", out.ns);
    if (key == "admission") return read_admission(fields, inner, out);
    if (key == "global") return read_global(fields, inner, out);
    if (key == "nodeScaleAdjuster") return read_scaling(fields, inner, out);
    if (key != "binder") return true;
    return fields.object(inner, "spec.binder", [&](std::string_view field, Value item) {
      if (field == "resourceReservation") return read_reservation(fields, item, out);
      if (field == "volumeBindingTimeoutSeconds") {
        return fields.number(item, "spec.binder.volumeBindingTimeoutSeconds", out.volume_binding_timeout);
      }
      return true;
    });
  });
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
bool read_managers(Fields& fields, Value value, KaiConfig& out) {
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
    for (const std::string_view field : kFields) {
      const std::string name(field);
      // RFC 3339 in UTC: text order is time order.
      if (!owned.is_object() || !owns(owned, field) || newest[name] > time) continue;
      newest[name] = time;
      out.managers[name] = manager;
    }
    return read;
  });
}

bool read_condition(Fields& fields, Value value, std::string& type, std::string& status,
                    std::optional<WallTime>& since) {
  return fields.object(value, "status.conditions", [&](std::string_view key, Value inner) {
    if (key == "type") return fields.text(inner, "status.conditions.type", type);
    if (key == "status") return fields.text(inner, "status.conditions.status", status);
    if (key == "lastTransitionTime") return fields.time(inner, "status.conditions.lastTransitionTime", since);
    return true;
  });
}

// Which of kFields are in `properties`, the schema of the field at `path`.
void walk_schema(const nlohmann::json& schema, const std::string& path, KaiSchema& out) {
  for (const std::string_view field : kFields) {
    if (field == path) out.fields.insert(path);
  }
  auto properties = schema.find("properties");
  if (properties == schema.end() || !properties->is_object()) return;
  for (const auto& [name, inner] : properties->items()) {
    const std::string below = path.empty() ? name : fmt::format("{}.{}", path, name);
    const bool wanted = std::any_of(kFields.begin(), kFields.end(), [&](std::string_view field) {
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

}  // namespace

k8s::Result<KaiConfig> project_kai_config(std::string_view text) {
  KaiConfig out;
  json::Document document("Config", text);
  const json::MetaFilter filter{true, json::keeps_own_annotation};
  auto read = document.read(out.meta, [&](Fields& fields, std::string_view key, Value value) {
    if (key == "metadata") {
      return json::read_meta(fields, value, filter, out.meta, [&](std::string_view field, Value inner) {
        return field != "managedFields" || read_managers(fields, inner, out);
      });
    }
    return key == "spec" ? read_spec(fields, value, out) : true;
  });
  if (!read) return std::unexpected(read.error());
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
  Deployment out;
  json::Document document("Deployment", text);
  auto read = document.read(out.meta, [&](Fields& fields, std::string_view key, Value value) {
    if (key == "metadata") return json::read_meta(fields, value, {}, out.meta);
    if (key == "spec") {
      return fields.object(value, "spec", [&](std::string_view field, Value inner) {
        return field == "replicas" ? fields.number(inner, "spec.replicas", out.replicas) : true;
      });
    }
    if (key != "status") return true;
    return fields.object(value, "status", [&](std::string_view field, Value inner) {
      if (field == "observedGeneration")
        return fields.number(inner, "status.observedGeneration", out.observed_generation);
      if (field == "updatedReplicas") return fields.number(inner, "status.updatedReplicas", out.updated);
      if (field == "availableReplicas") return fields.number(inner, "status.availableReplicas", out.available);
      if (field != "conditions") return true;
      return fields.array(inner, "status.conditions", [&](Value item) {
        std::string type;
        std::string status;
        std::optional<WallTime> since;
        if (!read_condition(fields, item, type, status, since)) return false;
        if (type == "Available") {
          out.available_condition = status == "True";
          out.available_since = since;
        }
        return true;
      });
    });
  });
  if (!read) return std::unexpected(read.error());
  return out;
}

k8s::Result<RuntimeClass> project_runtime_class(std::string_view text) {
  RuntimeClass out;
  json::Document document("RuntimeClass", text);
  auto read = document.read(out.meta, [&](Fields& fields, std::string_view key, Value value) {
    return key == "metadata" ? json::read_meta(fields, value, {}, out.meta) : true;
  });
  if (!read) return std::unexpected(read.error());
  return out;
}

k8s::Result<Lease> project_lease(std::string_view text) {
  Lease out;
  json::Document document("Lease", text);
  auto read = document.read(out.meta, [&](Fields& fields, std::string_view key, Value value) {
    if (key == "metadata") return json::read_meta(fields, value, {}, out.meta);
    if (key != "spec") return true;
    return fields.object(value, "spec", [&](std::string_view field, Value inner) {
      if (Fields::is_null(inner)) return true;
      if (field == "holderIdentity") return fields.text(inner, "spec.holderIdentity", out.holder);
      if (field == "acquireTime") return fields.time(inner, "spec.acquireTime", out.acquired);
      return true;
    });
  });
  if (!read) return std::unexpected(read.error());
  return out;
}

}  // namespace gso
