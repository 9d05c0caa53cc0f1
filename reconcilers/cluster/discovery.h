// Finds the NVIDIA operands in the operand namespaces (below): the device plugin, GPU Feature Discovery
// and the MPS control daemon. It matches by container name and owner uid, never by labels: the device plugin's chart
// gives all three DaemonSets the same labels.
#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/error.h"
#include "reconcilers/cluster/operand.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

class RecordStore;  // record_store.h

// `nos`: its device plugin runs only on nodes that nos partitions (cluster/other_systems.h).
enum class Provider { gpu_operator, device_plugin_chart, manifest, nos };

// A plugin installation: operands of one namespace, one owner, one ConfigMap.
struct PluginInstallation {
  std::string ns;
  Provider provider = Provider::manifest;
  std::string owner;  // ClusterPolicy name, Helm release, or empty.
  std::string
      config_map;  // Name in `ns`; empty: the plugin runs without profiles, and the operator does not reconcile it.
  std::vector<Operand> operands = {};
  // What a ClusterPolicy announces and the DaemonSets do not have yet.
  std::string announced_config_map = {};
  std::string announced_default = {};
  bool announced = false;
  std::int64_t clusterpolicy_generation = 0;
  // The ClusterPolicy cannot be read: a change that it announces is detected only once its DaemonSets have it.
  bool announcement_unknown = false;
  // The GPUCluster that replaces the ClusterPolicy: GPUs are shared by DRA claims, and no profile applies.
  std::string gpu_cluster = {};

  // "config mps-config default (none)": what is announced, for people.
  [[nodiscard]] std::string announced_config() const;
  // "namespace/configmap".
  [[nodiscard]] std::string id() const { return ns + "/" + config_map; }
  // The same as `id() == text`, for loops over a fleet.
  [[nodiscard]] bool has_id(std::string_view text) const {
    return text.size() == ns.size() + 1 + config_map.size() && text.starts_with(ns) && text[ns.size()] == '/' &&
           text.ends_with(config_map);
  }
  [[nodiscard]] ObjectKey config_map_key() const { return {ns, config_map}; }
  // The operand of that component that selects the node, or nullptr. If none selects it, an operand that could create
  // no new pod there because of a taint (Selects::tainted): the caller must check whether its pod still runs.
  [[nodiscard]] const Operand* find(Component component, const Node& node) const;
  [[nodiscard]] const Operand* by_uid(std::string_view daemonset_uid) const;
  friend bool operator==(const PluginInstallation&, const PluginInstallation&) = default;
};

struct Discovery {
  // Each has at least one plugin. If several plugins select a node, the first installation governs it: the GPU
  // Operator's first, then those with profiles, then by namespace, owner and ConfigMap.
  std::vector<PluginInstallation> installations;
  // Installations of Provider::nos: reconcilers/partitioning writes their ConfigMaps; their pods are not watched.
  std::vector<PluginInstallation> of_nos;
  // GFD and MPS DaemonSets that mount a ConfigMap which no plugin of the same namespace and owner mounts, and GFD
  // DaemonSets without any such plugin.
  std::vector<Operand> strays;
  // DaemonSets of MPS daemons without a device plugin, by key.
  std::vector<Operand> standalone;
  std::vector<std::string> complaints;  // DaemonSets that look like operands and belong to no installation.
  friend bool operator==(const Discovery&, const Discovery&) = default;
};

[[nodiscard]] Discovery discover(const World& world);

// Whether a device plugin that the operator knows reads its profiles from the ConfigMap, or will once the GPU Operator
// has rolled out what its ClusterPolicy announces. Not nos's plugin, whose profiles have other rules.
[[nodiscard]] bool holds_profiles(const World& world, const ObjectKey& config_map);

// The first of these operands of that component that selects the node, whatever its label nvidia.com/mps.capable is;
// null: none. For Discovery::strays and, with Component::mps, Discovery::standalone.
[[nodiscard]] const Operand* find_operand(const std::vector<Operand>& operands, Component component, const Node& node);
// The node's pod of such a DaemonSet: one that is not being deleted if there are several; null: none.
[[nodiscard]] const Pod* pod_of_standalone(const std::vector<Operand>& standalone,
                                           const std::vector<const Pod*>& operand_pods);

// Watches that the discovered operands require. A plain value: the runtime compares two of them and opens or closes
// watches.
struct WatchScope {
  enum class Kind { pods, configmaps, controllerrevisions, daemonsets } kind = Kind::pods;
  std::string ns;
  std::map<std::string, std::string> labels;  // matchLabels; pods, controllerrevisions and the record's shards.
  std::string name;                           // metadata.name; the other configmaps.
  friend auto operator<=>(const WatchScope&, const WatchScope&) = default;
};
// The operator's state ConfigMap with the record's shards.
[[nodiscard]] std::vector<WatchScope> record_scopes(const PlannerSettings& settings);
// Sorted, without duplicates: those; the DaemonSets of World::operand_namespaces; pods and ControllerRevisions of the
// discovered DaemonSets, the ConfigMaps they mount (those of nos included) and the one that a ClusterPolicy announces.
[[nodiscard]] std::vector<WatchScope> wanted_scopes(const World& world, const PlannerSettings& settings);

// --- Namespaces where the operator evicts no pod: the planner and the executor ask the same class. The chart's
// admission policy of evictions has the same namespaces.

// Those of one World.
class ProtectedNamespaces {
 public:
  ProtectedNamespaces(const World& world, const PlannerSettings& settings);
  // Whose namespace it is: "the cluster", "the operator", "the device plugin", "KAI". Empty: none of these, so pods
  // there can be evicted.
  [[nodiscard]] std::string_view owner_of(std::string_view ns) const;

 private:
  std::map<std::string, std::string_view, std::less<>> owners_;
};

// --- Whose DaemonSets are believed. Anybody who can create DaemonSets in one namespace can name a container like the
// device plugin's, so an operand counts only in an operand namespace:
//  - the operator's own, and those of the setting (PlannerSettings::operand_namespaces);
//  - those of DaemonSets whose owner is a ClusterPolicy that exists, by name and uid;
//  - those of the installations that the record has for nodes.
// If that names none (first start, no ClusterPolicy, no record), all in which an operand's DaemonSet is found count,
// and the record keeps this choice until the setting names some.

// project_daemonset() for operand namespaces: of one that is no operand, only what names it is kept.
[[nodiscard]] k8s::Result<DaemonSet> project_operand_daemonset(std::string_view json);

// The DaemonSets of a whole cluster that look like an operand's: by the name of a container (runs_operand()).
struct SeenDaemonSets {
  static constexpr std::size_t kMost = 256;
  std::vector<DaemonSet> kept;  // At most kMost, without their templates, and not those that are being deleted.
  std::size_t beyond = 0;       // How many more there are.
  // Namespaces of all of them, kept or not: whoever fills `kept` with DaemonSets of one namespace hides no other one.
  std::set<std::string> namespaces;
  std::set<std::string> of_cluster_policies;  // Of those that a ClusterPolicy owns, kept or not.

  // Takes it if it looks like an operand's. The ClusterPolicies are those of `world`.
  void add(const DaemonSet& daemonset, const World& world);
};

// Decides over the operand namespaces of one World, again and again.
class OperandNamespaces {
 public:
  OperandNamespaces();
  ~OperandNamespaces();
  // Sets World::operand_namespaces and operand_namespaces_chosen. World::configmaps must have the record. A record that
  // cannot be read adds what it added before, and nothing is chosen then.
  void decide(World& world, const PlannerSettings& settings, const SeenDaemonSets& seen);

 private:
  void read_record(const World& world, const PlannerSettings& settings);

  std::unique_ptr<RecordStore> stored_;
  std::set<std::string> recorded_;  // Of the installations of nodes.
  std::set<std::string> choice_;    // FleetRecord::operand_namespaces
};

// For a World that has every DaemonSet of the cluster in World::daemonsets: decides, and moves those of other
// namespaces to World::foreign_daemonsets.
void keep_trusted_daemonsets(World& world, const PlannerSettings& settings);

// --- DaemonSets, whether they are believed or not.

// Why the operator ignores this one of World::foreign_daemonsets, for people; empty: it does not look like an
// operand's.
[[nodiscard]] std::string foreign_plugin_text(const DaemonSet& daemonset);

// Every DaemonSet, wherever it is, by key: for commands that describe what runs on a node.
[[nodiscard]] std::vector<const DaemonSet*> all_daemonsets(const World& world);

}  // namespace gso
