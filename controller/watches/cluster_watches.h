// The watches that are always there: Nodes, ClusterPolicies, GPUClusters, DeviceClasses and ResourceSlices
// of the GPUs' DRA driver, KAI's Config and BindRequests, and the operator's two kinds. An API that discovery says is
// absent counts as synced and empty, and is looked for again; one that is refused or fails does not.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/runtime/task_group.h"
#include "controller/watches/scoped_watch.h"
#include "k8sclient/api/reader.h"
#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"
#include "k8sclient/watch/store.h"
#include "k8sclient/watch/watcher.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

class ClusterWatches {
 public:
  struct Reports {
    std::function<void(const std::string& resource, std::size_t objects)> complete;  // Each complete view.
    std::function<void(const std::string& resource, const k8s::Error&)> failed;
  };
  // Everything passed must outlive the watches; `tasks` runs them and is joined by its owner.
  ClusterWatches(k8s::Reader* client, k8s::Clock* clock, World* world, k8s::WatcherOptions defaults, Reports reports);
  ClusterWatches(const ClusterWatches&) = delete;
  ClusterWatches& operator=(const ClusterWatches&) = delete;

  void start(TaskGroup* tasks, boost::asio::any_io_executor executor);
  void stop();
  // Watcher::list_again() of all of them.
  void list_again();
  // Lists what was left out of a store, once there is room.
  void use_room();
  // Looks for absent APIs every `period`, and lets their watches start when they have appeared.
  boost::asio::awaitable<void> rediscover(k8s::Duration period);

  struct Kind {
    k8s::Gvr gvr;
    std::shared_ptr<ScopedWatch> watch;
    std::function<std::size_t()> objects;  // How many the store has.
    // Forbidden, and the operator works without it.
    [[nodiscard]] bool is_done_without() const;
  };
  [[nodiscard]] const std::vector<Kind>& kinds() const { return kinds_; }
  // Null: the resource is not watched here.
  [[nodiscard]] const ScopedWatch* find(const k8s::Gvr& gvr) const;
  // Why the server forbids the resource, while it does.
  [[nodiscard]] std::optional<k8s::Error> forbidden(const k8s::Gvr& gvr) const;
  // It has been listed since the API was absent, if it ever was.
  [[nodiscard]] bool served(const k8s::Gvr& gvr) const;
  // The API server serves both SharingPolicies and SharingRollouts.
  [[nodiscard]] bool policies_served() const;

 private:
  template <class T>
  void add(const k8s::Gvr& gvr, k8s::Store<T>* store, k8s::Result<T> (*project)(std::string_view));

  k8s::Reader* client_;
  k8s::Clock* clock_;
  k8s::WatcherOptions defaults_;
  Reports reports_;
  std::unique_ptr<k8s::Signal> wake_;
  bool stopping_ = false;
  World* world_;
  k8s::StoreBudget<BindRequest> request_budget_;
  ScopeCounts request_counts_;
  std::vector<Kind> kinds_;
};

}  // namespace gso
