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
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "controller/watches/scoped_watch.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

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

  ScopeCounts pod_counts_;
  ScopeCounts configmap_counts_;
  ScopeCounts revision_counts_;
  ScopeCounts daemonset_counts_;
  std::set<std::string> beyond_;
  bool first_ = true;
};

[[nodiscard]] k8s::Gvr resource_of(WatchScope::Kind kind);
// "pods of gpu-operator (app=nvidia-device-plugin-daemonset)"
[[nodiscard]] std::string to_string(const WatchScope& scope);

}  // namespace gso
