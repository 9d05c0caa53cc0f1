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
  ~ClusterWatches();
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

  struct Status {
    k8s::Gvr gvr;
    bool synced = false;  // Had a complete view once, or was absent once.
    k8s::View view;
    k8s::ApiState api = k8s::ApiState::unknown;
    std::size_t objects = 0;
    std::optional<k8s::Error> error;  // The last failure since the last complete view.
    bool optional_missing = false;    // Forbidden, and the operator works without it.
    // Complete, and a few minutes old at most.
    [[nodiscard]] bool readable() const { return synced && view.state >= k8s::ViewState::recent; }
    [[nodiscard]] bool current() const { return synced && view.state == k8s::ViewState::current; }
  };
  [[nodiscard]] std::vector<Status> status() const;
  // Of the store behind a resource, as Status has it; true for resources that are not watched here.
  [[nodiscard]] bool readable(const k8s::Gvr& gvr) const;
  [[nodiscard]] bool current(const k8s::Gvr& gvr) const;
  // The watch of a resource has failed, and no stream has been opened since: its store may be behind.
  [[nodiscard]] bool failing(const k8s::Gvr& gvr) const;
  // Why the server forbids the resource, while it does.
  [[nodiscard]] std::optional<k8s::Error> forbidden(const k8s::Gvr& gvr) const;
  // Of its objects, in words; empty: all are in the store.
  [[nodiscard]] std::string left_out(const k8s::Gvr& gvr) const;
  // Has been listed since the API was absent, if it ever was.
  [[nodiscard]] bool served(const k8s::Gvr& gvr) const;
  // The API server serves both SharingPolicies and SharingRollouts.
  [[nodiscard]] bool policies_served() const;

 private:
  struct Watch;
  [[nodiscard]] const Watch* find(const k8s::Gvr& gvr) const;
  template <class T>
  void add(k8s::Gvr gvr, k8s::Store<T>* store, k8s::Result<T> (*project)(std::string_view),
           k8s::StoreBudget<T>* budget = nullptr);

  k8s::Reader* client_;
  k8s::Clock* clock_;
  k8s::WatcherOptions defaults_;
  Reports reports_;
  std::unique_ptr<k8s::Signal> wake_;
  bool stopping_ = false;
  World* world_;
  k8s::StoreBudget<BindRequest> request_budget_;
  std::vector<std::unique_ptr<Watch>> watches_;
};

}  // namespace gso
