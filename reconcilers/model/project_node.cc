// Node and ConfigMap: JSON -> projected value.
#include <algorithm>
#include <limits>

#include "k8sclient/value/base64.h"
#include "reconcilers/model/json_fields.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/project.h"

namespace gso {
namespace {

using json::Fields;
using json::Value;

// Annotations of a Node that a planner reads: the operator's, those of other components that the operator must respect,
// and NFD's list of the labels that NFD owns (an NFD instance can prefix its name).
bool keeps_node_annotation(std::string_view key) {
  constexpr std::string_view kPrefixes[] = {"gpusharing.dev/", "nvidia.com/", "nvidia.mps/", "nos.nebuly.com/",
                                            "kai.scheduler/"};
  if (std::ranges::any_of(kPrefixes, [&](std::string_view prefix) { return key.starts_with(prefix); })) return true;
  return key.ends_with("nfd.node.kubernetes.io/feature-labels") || key == kKarpenterDoNotDisrupt ||
         key == kScaleDownDisabled;
}

bool read_taint(Fields& fields, Value value, Taint& taint) {
  return fields.object(value, "spec.taints", [&](std::string_view key, Value inner) {
    if (key == "key") return fields.text(inner, "spec.taints.key", taint.key);
    if (key == "value") return fields.text(inner, "spec.taints.value", taint.value);
    if (key == "effect") return fields.text(inner, "spec.taints.effect", taint.effect);
    return true;
  });
}

bool read_gpu_resource(Fields& fields, std::string_view key, Value value, std::string_view field, ResourceCounts& out) {
  if (!key.starts_with("nvidia.com/")) return true;
  std::int64_t& count = out[Interned(key)];
  return fields.quantity(value, field, count);
}

bool read_small(Fields& fields, Value value, std::string_view field, std::int64_t parts, std::int32_t& out) {
  std::int64_t read = 0;
  if (!fields.quantity(value, field, read, parts)) return false;
  out = static_cast<std::int32_t>(std::clamp<std::int64_t>(read, 0, std::numeric_limits<std::int32_t>::max()));
  return true;
}

bool read_allocatable(Fields& fields, Value value, Node& node) {
  return fields.object(value, "status.allocatable", [&](std::string_view key, Value inner) {
    if (key == "cpu") return read_small(fields, inner, "status.allocatable.cpu", 1000, node.room.cpu);
    if (key == "pods") return read_small(fields, inner, "status.allocatable.pods", 1, node.room.pods);
    if (key == "memory") return fields.quantity(inner, "status.allocatable.memory", node.room.memory);
    return read_gpu_resource(fields, key, inner, "status.allocatable", node.allocatable);
  });
}

bool read_node_status(Fields& fields, Value value, Node& node) {
  return fields.object(value, "status", [&](std::string_view key, Value inner) {
    if (key == "capacity") {
      return fields.object(inner, "status.capacity", [&](std::string_view resource, Value count) {
        return read_gpu_resource(fields, resource, count, "status.capacity", node.capacity);
      });
    }
    if (key == "allocatable") return read_allocatable(fields, inner, node);
    if (key == "conditions") {
      return fields.array(inner, "status.conditions", [&](Value item) { return read_ready(fields, item, node.ready); });
    }
    return true;
  });
}

bool read_node_spec(Fields& fields, Value value, Node& node) {
  return fields.object(value, "spec", [&](std::string_view key, Value inner) {
    if (key == "unschedulable") return fields.flag(inner, "spec.unschedulable", node.unschedulable);
    if (key == "taints") {
      return fields.array(inner, "spec.taints",
                          [&](Value item) { return read_taint(fields, item, node.taints.emplace_back()); });
    }
    return true;
  });
}

// Annotations of a ConfigMap that planners read: the operator's stops, and the marks of GitOps tools and Helm.
bool keeps_configmap_annotation(std::string_view key) {
  return key.starts_with("gpusharing.dev/") || key.starts_with("meta.helm.sh/") ||
         key.starts_with("argocd.argoproj.io/") || key.starts_with("kustomize.toolkit.fluxcd.io/");
}

// One entry of managedFields that owns something below f:data.
struct DataManager {
  Interned manager;
  std::optional<WallTime> time;
  bool owns_data = false;
  std::vector<std::string> keys;
};

bool read_owned_keys(Fields& fields, Value value, std::vector<std::string>& out) {
  return fields.object(value, "metadata.managedFields.fieldsV1.f:data", [&](std::string_view field, Value) {
    constexpr std::string_view kPrefix = "f:";
    if (field.starts_with(kPrefix)) out.emplace_back(field.substr(kPrefix.size()));
    return true;
  });
}

bool read_managed_entry(Fields& fields, Value value, DataManager& entry) {
  return fields.object(value, "metadata.managedFields", [&](std::string_view key, Value inner) {
    if (key == "manager") return fields.text(inner, "metadata.managedFields.manager", entry.manager);
    if (key == "time") return fields.time(inner, "metadata.managedFields.time", entry.time);
    if (key == "fieldsV1") {
      return fields.object(inner, "metadata.managedFields.fieldsV1", [&](std::string_view field, Value owned) {
        entry.owns_data = entry.owns_data || field == "f:data" || field == "f:binaryData";
        return field == "f:data" ? read_owned_keys(fields, owned, entry.keys) : true;
      });
    }
    return true;
  });
}

void keep_data_managers(std::vector<DataManager> managers, ConfigMap& out) {
  std::erase_if(managers, [](const DataManager& entry) { return !entry.owns_data; });
  std::stable_sort(managers.begin(), managers.end(),
                   [](const DataManager& a, const DataManager& b) { return a.time < b.time; });
  out.data_changed = out.meta.creation_timestamp;
  // A manifest without a creation time was written by hand: its data counts as never changed.
  const bool by_hand = out.meta.creation_timestamp == WallTime{};
  out.data_time_known =
      by_hand || std::ranges::any_of(managers, [](const auto& entry) { return entry.time.has_value(); });
  for (const DataManager& entry : managers) {
    out.data_managers.push_back(entry.manager);
    if (entry.manager == kFieldManager) {
      out.our_keys.insert(entry.keys.begin(), entry.keys.end());
      continue;
    }
    if (entry.time) out.data_changed = std::max(out.data_changed, *entry.time);
  }
}

}  // namespace

k8s::Result<Node> project_node(std::string_view text) {
  Node node;
  json::Document document("Node", text);
  const json::MetaFilter filter{true, keeps_node_annotation};
  auto read = document.read(node.meta, [&](Fields& fields, std::string_view key, Value value) {
    if (key == "metadata") return json::read_meta(fields, value, filter, node.meta);
    if (key == "spec") return read_node_spec(fields, value, node);
    if (key == "status") return read_node_status(fields, value, node);
    return true;
  });
  if (!read) return std::unexpected(read.error());
  return node;
}

bool operator==(const ConfigMap& a, const ConfigMap& b) {
  if (a.meta != b.meta || a.immutable != b.immutable || a.data_changed != b.data_changed ||
      a.data_time_known != b.data_time_known || a.data_managers != b.data_managers || a.our_keys != b.our_keys ||
      a.data.size() != b.data.size()) {
    return false;
  }
  return std::equal(a.data.begin(), a.data.end(), b.data.begin(), [](const auto& x, const auto& y) {
    return x.first == y.first && (x.second == y.second || (x.second && y.second && *x.second == *y.second));
  });
}

k8s::Result<ConfigMap> project_configmap(std::string_view text) {
  ConfigMap config_map;
  std::vector<DataManager> managers;
  json::Document document("ConfigMap", text);
  const json::MetaFilter filter{true, keeps_configmap_annotation};
  auto read = document.read(config_map.meta, [&](Fields& fields, std::string_view key, Value value) {
    if (key == "metadata") {
      return json::read_meta(fields, value, filter, config_map.meta, [&](std::string_view field, Value inner) {
        if (field != "managedFields") return true;
        return fields.array(inner, "metadata.managedFields",
                            [&](Value item) { return read_managed_entry(fields, item, managers.emplace_back()); });
      });
    }
    if (key == "immutable") return fields.flag(value, "immutable", config_map.immutable);
    if (key == "binaryData") {  // Pods get these as files, like any other key.
      return fields.object(value, "binaryData", [&](std::string_view name, Value inner) {
        std::string encoded;
        std::string entry(name);
        if (!fields.text(inner, "binaryData." + entry, encoded)) return false;
        auto content = k8s::base64_decode(encoded);
        if (!content) return fields.fail("binaryData." + entry, "base64");
        config_map.data[std::move(entry)] = std::make_shared<const std::string>(std::move(*content));
        return true;
      });
    }
    if (key == "data") {
      return fields.object(value, "data", [&](std::string_view name, Value inner) {
        std::string content;
        std::string entry(name);
        if (!fields.text(inner, "data." + entry, content)) return false;
        config_map.data[std::move(entry)] = std::make_shared<const std::string>(std::move(content));
        return true;
      });
    }
    return true;
  });
  if (!read) return std::unexpected(read.error());
  keep_data_managers(std::move(managers), config_map);
  return config_map;
}

}  // namespace gso
