// The watches that follow from what was discovered: the DaemonSets of the operand namespaces, and their pods,
// ControllerRevisions and ConfigMaps. Opened and closed by difference when the wanted scopes change; many scopes fill
// one store.
//
// Guarantees
//  - Those of scoped_watch.h; the objects of a scope that is no longer wanted stay until every scope that is wanted now
//    has synced.
//  - After update(), World::unsynced_namespaces names every namespace with a wanted scope that has not synced, or that
//    has been neither confirmed nor listed for minutes; those where all such scopes are refused (403) are in
//    World::refused_namespaces, too.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "controller/watches/scoped_watch.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/project.h"
#include "reconcilers/model/resources.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// --- The kinds that the World keeps for planners, each with its store and its projection: one table for watches and
// for the lists of commands. Whoever calls with SharingPolicies includes reconcilers/model/policy.h.

// Kinds that are watched in the whole cluster: calls f(resource, store, projection) for each, in the order in which
// people hear of them. All but Nodes can be missing.
template <class F>
void each_cluster_kind(World& world, F f) {
  f(resources::nodes, world.nodes, &project_node);
  f(resources::cluster_policies, world.clusterpolicies, &project_clusterpolicy);
  f(resources::gpu_clusters, world.gpu_clusters, &project_gpu_cluster);
  f(resources::device_classes, world.device_classes, &project_device_class);
  f(resources::resource_slices, world.resource_slices, &project_resource_slice);
  f(resources::kai_configs, world.kai.configs, &project_kai_config);
  f(resources::bind_requests, world.kai.bind_requests, &project_bind_request);
  f(resources::sharing_policies, world.policies, &project_sharing_policy);
  f(resources::sharing_rollouts, world.rollouts, &project_sharing_rollout);
}

// The same of kinds that are watched in the namespaces of operands (WatchScope).
template <class F>
void each_operand_kind(World& world, F f) {
  f(resources::pods, world.operand_pods, &project_operand_pod);
  f(resources::config_maps, world.configmaps, &project_configmap);
  f(resources::controller_revisions, world.revisions, &project_controller_revision);
  f(resources::daemon_sets, world.daemonsets, &project_operand_daemonset);
}

// --- The watches of operand namespaces.

class DynamicWatches : public WatchFamily<WatchScope> {
 public:
  // `reports.complete`: unsynced_namespaces or refused_namespaces has changed, or all DaemonSets are known.
  DynamicWatches(WatchResources resources, WatchReports reports)
      : WatchFamily(std::move(resources), std::move(reports)) {}

  // Open at once, each with a connection of its own. A fleet with several plugins has a few dozen.
  static constexpr std::size_t kMost = 256;
  // Opens what is new, closes what is not wanted. The first call marks the stores of pods, ConfigMaps and
  // ControllerRevisions as synced: from then on unsynced_namespaces says what is missing. That of DaemonSets is synced
  // once all its scopes are.
  void want(const std::vector<WatchScope>& scopes);
  // Namespaces of the scopes that are not watched because there are more than kMost. Until somebody changes that they
  // are in World::refused_namespaces.
  [[nodiscard]] const std::set<std::string>& beyond() const { return beyond_; }
  // What the views say now, in World. Before each pass.
  void update();
  // Calls f for each wanted scope that has had a complete view.
  void for_each_synced(const std::function<void(const WatchScope&, const ScopedWatch&)>& f) const;
  // Wanted scopes that have neither synced nor been refused.
  [[nodiscard]] std::vector<WatchScope> loading() const;
  // Every wanted scope of that kind has had a complete view.
  [[nodiscard]] bool synced(WatchScope::Kind kind) const;
  using WatchFamily::open;
  // Open watches of one kind, for metrics.
  [[nodiscard]] std::size_t open(WatchScope::Kind kind) const;

 private:
  k8s::Gvr prepare(const WatchScope& scope, ScopedWatch& watch, k8s::WatcherOptions& options) override;
  void note_complete(const WatchScope& scope) override;
  void note_failed(const WatchScope& scope, const k8s::Error& error) override;

  std::map<WatchScope::Kind, ScopeCounts> counts_;  // Those of each store.
  std::set<std::string> beyond_;
  bool first_ = true;
};

[[nodiscard]] k8s::Gvr resource_of(WatchScope::Kind kind);
// What a list or a watch of the scope asks for. `Options`: k8s::ListOptions or k8s::WatcherOptions.
template <class Options>
void select(const WatchScope& scope, Options& options) {
  options.ns = scope.ns;
  options.label_selector.match_labels = scope.labels;
  if (!scope.name.empty()) options.field_selector = k8s::FieldSelector::equals("metadata.name", scope.name);
}
// "pods of gpu-operator (app=nvidia-device-plugin-daemonset)"
[[nodiscard]] std::string to_string(const WatchScope& scope);

}  // namespace gso
