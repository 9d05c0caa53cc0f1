// From JSON to the objects of the model.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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
// Of a Node in protobuf, for k8s::StoreSink. The content is equal only for those that project_node() makes equal but
// for the version. Anybody can compute the hash: whoever may write a Node can hide its next change.
k8s::Revision revision_of_node(std::string_view object);
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
// Of a pod that is bound: the names of its ResourceClaims. Empty for one that its status does not name.
k8s::Result<std::vector<std::string>> project_claims_of_pod(std::string_view json);
// Whether a ResourceClaim is allocated to the GPUs' driver; nullopt: to none, which a bound pod's is not for long.
k8s::Result<std::optional<bool>> project_gpu_claim(std::string_view json);
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

using NodeSelectorTerms = std::vector<std::vector<NodeSelectorRequirement>>;

inline bool read_terms(Fields& fields, Value value, std::string_view path, NodeSelectorTerms& out) {
  std::size_t room = 8 * kMostEntries;
  return fields.array(value, path, [&](Value item) {
    if (out.size() >= kMostEntries) return true;
    auto& requirements = out.emplace_back();
    return fields.object(item, path, [&](std::string_view key, Value inner) {
      if (key != "matchExpressions" && key != "matchFields") return true;
      return fields.array(inner, "matchExpressions", [&](Value expression) {
        return requirements.size() >= kMostEntries || room == 0 ||
               read_requirement(fields, expression, room, requirements.emplace_back());
      });
    });
  });
}

inline constexpr Row<NodeSelectorTerms> kAffinity[] = {
    {"affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms", read_terms}};

// Of `affinity`: one item for each term of its required node affinity.
inline bool read_node_affinity(Fields& fields, Value value, std::string_view /*path*/, NodeSelectorTerms& out) {
  return read_rows(fields, value, "affinity.", kAffinity, out);
}

// --- Tolerations, volumes, and what containers have, for the projections of pods and of pod templates.

struct ReadToleration {
  Toleration toleration;
  bool ends = false;  // tolerationSeconds
};
inline constexpr Row<ReadToleration> kToleration[] = {
    row<&ReadToleration::toleration, &Toleration::key>("tolerations[].key"),
    row<&ReadToleration::toleration, &Toleration::op>("tolerations[].operator"),
    row<&ReadToleration::toleration, &Toleration::value>("tolerations[].value"),
    row<&ReadToleration::toleration, &Toleration::effect>("tolerations[].effect"),
    row_by<read_presence, &ReadToleration::ends>("tolerations[].tolerationSeconds"),
};
// A list of them. `kLasting`: without those that are temporary.
template <bool kLasting>
bool read_tolerations(Fields& fields, Value value, std::string_view /*path*/, std::vector<Toleration>& out) {
  return read_each<ReadToleration>(fields, value, "tolerations[].", kToleration, [&](ReadToleration& read) {
    if (out.size() < kMostEntries && !(kLasting && read.ends)) out.push_back(std::move(read.toleration));
  });
}

struct Volume {
  std::string name;
  std::string host_path;   // Empty: another kind of volume.
  std::string config_map;  // The same.
  bool of_pod = false;     // Made for the pod: no daemon outside of it uses the same directory.
};
inline constexpr Row<Volume> kVolume[] = {
    row<&Volume::name>("volumes[].name"),
    row<&Volume::host_path>("volumes[].hostPath.path"),
    row<&Volume::config_map>("volumes[].configMap.name"),
};
inline bool read_volume(Fields& fields, Value value, Volume& volume) {
  constexpr std::string_view kOfPod[] = {"emptyDir", "configMap", "secret", "projected", "downwardAPI", "ephemeral"};
  return fields.object(value, "volumes", [&](std::string_view key, Value inner) {
    volume.of_pod = volume.of_pod || std::ranges::find(kOfPod, key) != std::end(kOfPod);
    return read_row(fields, inner, "volumes[].", key, kVolume, volume);
  });
}

struct Mount {
  std::string volume;
  std::string path;      // In the container.
  std::string sub_path;  // Of the volume.
};
inline constexpr Row<Mount> kMount[] = {
    row<&Mount::volume>("volumeMounts[].name"),
    row<&Mount::path>("volumeMounts[].mountPath"),
    row<&Mount::sub_path>("volumeMounts[].subPath"),
    row<&Mount::sub_path>("volumeMounts[].subPathExpr"),
};

// A variable of a container.
struct Variable {
  std::string name;
  std::string text;
  bool from_elsewhere = false;  // valueFrom: the template does not contain the value.
  bool from_object = false;     // A ConfigMap or Secret contains it.
};
inline constexpr Row<Variable> kVariable[] = {
    row<&Variable::name>("env[].name"),
    row<&Variable::text>("env[].value"),
    {"env[].valueFrom", nullptr, [](Variable& variable) { variable.from_elsewhere = true; }},
    row_by<read_presence, &Variable::from_object>("env[].valueFrom.configMapKeyRef"),
    row_by<read_presence, &Variable::from_object>("env[].valueFrom.secretKeyRef"),
};

// --- What the containers of a pod request together.

// As the scheduler counts (k8s.io/component-helpers, resource.PodRequests): a sidecar runs beside everything that
// starts after it, and other init containers run one after the other before the main containers. Containers have
// `requests` and `sidecar`.
template <class Container, class Requests>
[[nodiscard]] Requests requests_of(const std::vector<Container>& inits, const std::vector<Container>& mains,
                                   void (*add)(Requests& sum, const Requests& more),
                                   void (*raise_to)(Requests& out, const Requests& least)) {
  Requests sidecars;
  Requests largest_step;
  for (const Container& init : inits) {
    Requests step = sidecars;
    add(step, init.requests);
    if (init.sidecar) sidecars = step;
    raise_to(largest_step, step);
  }
  Requests out = std::move(sidecars);
  for (const Container& main : mains) add(out, main.requests);
  raise_to(out, largest_step);
  return out;
}

// Of an init container: its restartPolicy makes it a sidecar.
inline bool read_sidecar(Fields& fields, Value value, std::string_view path, bool& out) {
  std::string_view policy;
  if (!fields.view(value, path, policy)) return false;
  out = policy == "Always";
  return true;
}

}  // namespace gso::json
