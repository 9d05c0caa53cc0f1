// The watches that follow from nodes that are labelled for partitioning: pods without a node, the pods of each of these
// nodes, and the Lease of nos's gpu-partitioner (model/partitioning_world.h). While no node has the label, or
// partitioning is off, none is open.
//
// Guarantee: PartitioningWorld says that pending pods, Leases and the pods of a node are known only while the view
// behind it is current (k8s::ViewState); so nothing is planned from a view that may be behind.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <compare>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "controller/runtime/task_group.h"
#include "controller/watches/scoped_watch.h"
#include "k8sclient/api/reader.h"
#include "k8sclient/watch/watcher.h"
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
  struct Reports {
    std::function<void()> complete;  // A view has become complete.
    std::function<void(const PartitioningScope&, const k8s::Error&)> failed;
  };
  // Everything passed must outlive the watches; `tasks` runs them and is joined by its owner. Follows the Nodes of
  // `world`, which has none yet.
  PartitioningWatches(k8s::Reader* client, World* world, k8s::WatcherOptions defaults, TaskGroup* tasks,
                      boost::asio::any_io_executor executor, Reports reports);

  // Opens what is wanted now, closes what is not, and says in PartitioningWorld what is known. Before each pass.
  void update(PartitioningMode mode);

 private:
  [[nodiscard]] std::vector<PartitioningScope> wanted(PartitioningMode mode) const;
  std::shared_ptr<ScopedWatch> open_one(const PartitioningScope& scope);
  [[nodiscard]] std::string find_gap() const;

  World* world_;
  k8s::StoreBudget<SlicePod> pod_budget_;
  std::set<std::string> labelled_;  // Nodes.
  bool outdated_ = false;           // Others are labelled than those whose pods are watched.
  PartitioningMode mode_ = PartitioningMode::off;
  ScopeCounts pod_counts_;
  ScopeCounts lease_counts_;
};

}  // namespace gso
