// Finds the NVIDIA operands in the cluster: the device plugin, GPU Feature Discovery and the MPS control daemon. By
// container name and owner uid, never by labels: the device plugin's chart gives all three DaemonSets the same ones.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/cluster/operand.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// `nos`: its device plugin runs only on nodes that nos partitions (cluster/nos.h).
enum class Provider { gpu_operator, device_plugin_chart, manifest, nos };
// "GPUOperator", "DevicePluginChart", "Manifest", "Nos"
[[nodiscard]] std::string_view to_string(Provider provider);

// The operands that work together: one namespace, one owner, one ConfigMap.
struct PluginInstallation {
  std::string ns;
  Provider provider = Provider::manifest;
  std::string owner;       // ClusterPolicy name, Helm release, or empty.
  std::string config_map;  // Name in `ns`; empty: the plugin runs without profiles, there is nothing to reconcile.
  std::vector<Operand> operands;
  // What a ClusterPolicy announces and the DaemonSets do not have yet.
  std::string announced_config_map;
  std::string announced_default;
  bool announced = false;
  std::int64_t clusterpolicy_generation = 0;
  // The ClusterPolicy may not be read: a change that it announces shows only once its DaemonSets have it.
  bool announcement_unknown = false;
  // The GPUCluster that takes the ClusterPolicy's place: GPUs are shared by DRA claims, and no profile applies.
  std::string gpu_cluster;

  // "namespace/configmap".
  [[nodiscard]] std::string id() const { return ns + "/" + config_map; }
  [[nodiscard]] ObjectKey config_map_key() const { return {ns, config_map}; }
  // The operand of that component that selects the node, or nullptr. One that a taint keeps from making new pods there
  // (Selects::tainted) where no other one does: whether its pod still runs has to be asked.
  [[nodiscard]] const Operand* find(Component component, const Node& node) const;
  [[nodiscard]] const Operand* by_uid(std::string_view daemonset_uid) const;
  friend bool operator==(const PluginInstallation&, const PluginInstallation&) = default;
};

struct Discovery {
  // Each has at least one plugin. Where several plugins select a node, the first set governs it: the GPU Operator's
  // come first, then those with profiles, then by namespace, owner and ConfigMap.
  std::vector<PluginInstallation> sets;
  // Those of Provider::nos: never reconciled, and their pods and ConfigMaps are not watched.
  std::vector<PluginInstallation> of_nos;
  // GFD and MPS DaemonSets that mount a ConfigMap which no plugin beside them mounts, and GFD DaemonSets without any
  // plugin beside them (same namespace and owner).
  std::vector<Operand> strays;
  std::vector<std::string> complaints;  // DaemonSets that look like operands and could not be placed.
  friend bool operator==(const Discovery&, const Discovery&) = default;
};

[[nodiscard]] Discovery discover(const World& world);

// Whether one of them lets a pod onto, or stay on, a node with that taint.
[[nodiscard]] bool tolerates(const std::vector<Toleration>& tolerations, const Taint& taint);

// How well a DaemonSet's template selects a node: nodeSelector, required node affinity, NoSchedule and NoExecute
// taints (with the tolerations every DaemonSet pod has). `paused` when only a deploy label says "paused-for-…": the
// pods are supposed to be gone until the driver manager or the MIG manager restores it. `tainted`: it would, but for a
// taint: pods that run there go on (NoSchedule), and one that is deleted does not come back.
enum class Selects { no, tainted, yes, paused };
// `ignore_mps_capable`: the label nvidia.com/mps.capable follows the profile, so it does not decide whether a node
// belongs to an MPS DaemonSet.
[[nodiscard]] Selects selects(const Operand& operand, const Node& node, bool ignore_mps_capable);

// The first taint of the node that keeps the operand's pods off, or nullptr.
[[nodiscard]] const Taint* untolerated(const Operand& operand, const Node& node);

// "maintenance=true:NoSchedule", as kubectl writes it.
[[nodiscard]] std::string to_string(const Taint& taint);

// The first of Discovery::strays of that component that selects the node, or nullptr.
[[nodiscard]] const Operand* find_stray(const std::vector<Operand>& strays, Component component, const Node& node);

// Watches that follow from what was discovered. A plain value: the runtime opens and closes watches by difference.
struct WatchScope {
  enum class Kind { pods, configmaps, controllerrevisions } kind = Kind::pods;
  std::string ns;
  std::map<std::string, std::string> labels;  // matchLabels; pods, controllerrevisions and the record's shards.
  std::string name;                           // metadata.name; the other configmaps.
  friend auto operator<=>(const WatchScope&, const WatchScope&) = default;
};
// Sorted, without duplicates: pods and ControllerRevisions of the discovered DaemonSets, the ConfigMaps they mount and
// the one that a ClusterPolicy announces, and our own state ConfigMap with the record's shards.
[[nodiscard]] std::vector<WatchScope> wanted_scopes(const World& world, const PlannerSettings& settings);

}  // namespace gso
