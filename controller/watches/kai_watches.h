// The watches that follow from KAI: pods with a GPU group, reservation pods, the binder's Deployment, RuntimeClasses
// and the schemas of KAI's two CRDs. (kai-config and BindRequests are always watched, by cluster_watches.) Opened where
// KAI's APIs are served; where they are not, one watch of the default reservation namespace finds what a removed KAI
// left.
//
// Guarantee: KaiWorld::incomplete is empty only while every view that the collection rests on is current
// (k8s::ViewState); so a planner never concludes from a view that may be behind.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include "controller/watches/cluster_watches.h"
#include "controller/watches/scoped_watch.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

struct KaiScope {
  enum class Kind { grouped_pods, reservations, binder, runtime_classes, schema } kind = Kind::grouped_pods;
  std::string ns;
  std::string value;  // The app label's value; the name of the Deployment or CRD.
  friend auto operator<=>(const KaiScope&, const KaiScope&) = default;
};
// "pods of kai-resource-reservation (app=kai-resource-reservation)"
[[nodiscard]] std::string to_string(const KaiScope& scope);

class KaiWatches : public WatchFamily<KaiScope> {
 public:
  KaiWatches(WatchResources resources, WatchReports reports);

  // Opens what is wanted now, closes what is not, and says in KaiWorld what is served and what is missing. Before each
  // pass. `off`: nothing is watched.
  void update(ClusterWatches& cluster, const KaiSettings& settings);

 private:
  std::vector<KaiScope> wanted(const KaiSettings& settings) const;
  k8s::Gvr prepare(const KaiScope& scope, ScopedWatch& watch, k8s::WatcherOptions& options) override;
  void note_complete(const KaiScope& scope) override;
  [[nodiscard]] std::string find_gap(const ClusterWatches& cluster) const;

  k8s::StoreBudget<KaiPod> pod_budget_;
  ScopeCounts pod_counts_;
  ScopeCounts deployment_counts_;
  ScopeCounts schema_counts_;
  ScopeCounts class_counts_;
};

}  // namespace gso
