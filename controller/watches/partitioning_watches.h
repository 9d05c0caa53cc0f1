// The watches that follow from nodes that are labelled for partitioning: pods without a node, the pods of each of these
// nodes, and the Lease of nos's gpu-partitioner (model/partitioning_world.h). While no node has the label, or
// partitioning is off, none is open.
//
// Guarantee: PartitioningWorld says that pending pods, Leases and the pods of a node are known only while the view
// behind it is current (k8s::ViewState); so nothing is planned from a view that may be behind.
#pragma once

#include <compare>
#include <set>
#include <string>
#include <vector>

#include "controller/watches/scoped_watch.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/partitioning/partitioning.h"

namespace gso {

struct PartitioningScope {
  enum class Kind { pending_pods, leases, pods_of_node } kind = Kind::pending_pods;
  std::string node;
  friend auto operator<=>(const PartitioningScope&, const PartitioningScope&) = default;
};
// "pods of node gpu-01"
[[nodiscard]] std::string to_string(const PartitioningScope& scope);

class PartitioningWatches : public WatchFamily<PartitioningScope> {
 public:
  // Follows the Nodes of `resources.world`, which has none yet.
  PartitioningWatches(WatchResources resources, WatchReports reports);

  // Opens what is wanted now, closes what is not, and says in PartitioningWorld what is known. Before each pass.
  void update(PartitioningMode mode);

 private:
  [[nodiscard]] std::vector<PartitioningScope> wanted(PartitioningMode mode) const;
  k8s::Gvr prepare(const PartitioningScope& scope, ScopedWatch& watch, k8s::WatcherOptions& options) override;
  [[nodiscard]] std::string find_gap() const;

  k8s::StoreBudget<SlicePod> pod_budget_;
  std::set<std::string> labelled_;  // Nodes.
  bool outdated_ = false;           // Others are labelled than those whose pods are watched.
  PartitioningMode mode_ = PartitioningMode::off;
  ScopeCounts pod_counts_;
  ScopeCounts lease_counts_;
};

}  // namespace gso
