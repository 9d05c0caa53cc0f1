// From JSON to the objects of the model.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/error.h"
#include "reconcilers/model/json_fields.h"
#include "reconcilers/model/objects.h"
#include "reconcilers/model/partitioning_world.h"

namespace gso {

struct SharingPolicy;   // policy.h
struct SharingRollout;  // policy.h

// --- JSON text of one object -> projected value. Reads only the fields that the value keeps (simdjson on demand, no
// DOM). Defined in project_*.cc, by the kinds that are read alike. Guarantees: never throws; a missing field takes its
// default; a field of the wrong type, invalid JSON or a missing metadata.name is an Error{decode} that names the
// field. Unknown fields are ignored.

k8s::Result<Node> project_node(std::string_view object);  // Also from protobuf (k8sclient/value/protobuf_object.h).
k8s::Result<ConfigMap> project_configmap(std::string_view json);
k8s::Result<DaemonSet> project_daemonset(std::string_view json);
k8s::Result<ControllerRevision> project_controller_revision(std::string_view json);
k8s::Result<Pod> project_pod(std::string_view json);
// For pods of the plugin, GFD and MPS: every node has several, so fields that only consumers need are left out.
k8s::Result<Pod> project_operand_pod(std::string_view json);
// Pods of partitioned nodes, and pods without a node.
k8s::Result<SlicePod> project_slice_pod(std::string_view json);
k8s::Result<Lease> project_lease(std::string_view json);
k8s::Result<ClusterPolicy> project_clusterpolicy(std::string_view json);
k8s::Result<GpuCluster> project_gpu_cluster(std::string_view json);
k8s::Result<DeviceClass> project_device_class(std::string_view json);
k8s::Result<ResourceSlice> project_resource_slice(std::string_view json);
k8s::Result<SharingPolicy> project_sharing_policy(std::string_view json);
k8s::Result<SharingRollout> project_sharing_rollout(std::string_view json);

// --- The fields of a SharingPolicy's spec: one table, from which it is projected, and by which `lint` checks it.

// A field, and what it may have by itself. What several fields must have together, reconcilers/lint/policy.cc says.
struct PolicyField {
  enum class Type : std::uint8_t { elsewhere, mapping, list, text, word, boolean, integer, duration, count_or_percent };
  std::string_view path;  // "spec.rollout.paused"; "[]" follows the name of a list of mappings.
  Type type = Type::elsewhere;
  std::span<const std::string_view> words{};
  std::int64_t least = 0;  // Of an integer; of a duration in seconds.
  std::int64_t most = 0;
  std::string_view bounds{};  // Of a duration, as a text; empty: any duration.
  // As in json::Row.
  bool (*read)(json::Fields&, json::Value, std::string_view path, SharingPolicy&) = nullptr;
  void (*begin)(SharingPolicy&) = nullptr;
  // The value as people write it, "unset" of one that is absent: what `diff` compares. Null: shown with its parent.
  std::string (*shown)(const SharingPolicy&) = nullptr;
};

// Every field, and the one place to add one. Fields without a subfield in this list accept any content.
[[nodiscard]] std::span<const PolicyField> policy_fields();

}  // namespace gso

namespace gso::json {

// --- Required node affinity, for the projections of pods and of pod templates.

// `room`: how many more values are kept. What is beyond is dropped, as is a list's end (json_fields.h). Of a value that
// is longer than any name or label, and so matches nothing, the beginning is kept.
inline bool read_requirement(Fields& fields, Value value, std::size_t& room, NodeSelectorRequirement& requirement) {
  return fields.object(value, "matchExpressions", [&](std::string_view key, Value inner) {
    if (key == "key") return fields.text(inner, "matchExpressions.key", requirement.key);
    if (key == "operator") return fields.text(inner, "matchExpressions.operator", requirement.op);
    if (key == "values") {
      return fields.array(inner, "matchExpressions.values", [&](Value item) {
        if (requirement.values.size() >= kMostEntries || room == 0) return true;
        --room;
        std::string_view read;
        if (!fields.view(item, "matchExpressions.values", read)) return false;
        requirement.values.emplace_back(read.substr(0, kMostName + 1));
        return true;
      });
    }
    return true;
  });
}

// Of `affinity`: nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms, one item for each term.
inline bool read_node_affinity(Fields& fields, Value value, std::string_view path,
                               std::vector<std::vector<NodeSelectorRequirement>>& out) {
  std::size_t room = 8 * kMostEntries;
  auto term = [&](Value item) {
    if (out.size() >= kMostEntries) return true;
    auto& requirements = out.emplace_back();
    return fields.object(item, "nodeSelectorTerms", [&](std::string_view key, Value inner) {
      if (key != "matchExpressions" && key != "matchFields") return true;
      return fields.array(inner, "matchExpressions", [&](Value expression) {
        return requirements.size() >= kMostEntries || room == 0 ||
               read_requirement(fields, expression, room, requirements.emplace_back());
      });
    });
  };
  return fields.object(value, path, [&](std::string_view kind, Value node_affinity) {
    return kind != "nodeAffinity" || fields.object(node_affinity, path, [&](std::string_view when, Value required) {
      return when != "requiredDuringSchedulingIgnoredDuringExecution" ||
             fields.object(required, path, [&](std::string_view key, Value terms) {
               return key != "nodeSelectorTerms" || fields.array(terms, "nodeSelectorTerms", term);
             });
    });
  });
}

// --- A toleration, for the projections of pods and of pod templates.

// A list of them. `kLasting`: without those that are temporary (tolerationSeconds).
template <bool kLasting>
bool read_tolerations(Fields& fields, Value value, std::string_view path, std::vector<Toleration>& out) {
  return fields.array(value, path, [&](Value item) {
    if (out.size() >= kMostEntries) return true;
    Toleration read;
    bool ends = false;
    const bool whole = fields.object(item, path, [&](std::string_view key, Value inner) {
      if (key == "key") return fields.text(inner, path, read.key);
      if (key == "operator") return fields.text(inner, path, read.op);
      if (key == "value") return fields.text(inner, path, read.value);
      if (key == "effect") return fields.text(inner, path, read.effect);
      if (key == "tolerationSeconds") ends = !Fields::is_null(inner);
      return true;
    });
    if (!kLasting || !ends) out.push_back(std::move(read));
    return whole;
  });
}

}  // namespace gso::json
