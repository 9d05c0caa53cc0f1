// Manager: keeps the stores in step with the cluster, and runs planning passes over them. One pass plans the whole
// fleet from the current stores, executes the plan, and says when to look again.
//
// Guarantees
//  - A reconciler plans only when every store that it reads has synced, and only while this replica holds the Lease.
//  - No pass plans over stores that do not show the operator's own writes yet.
//  - Events that arrive within batch_window of each other share one pass; a pass never overlaps another.
//  - Standbys keep their stores in step, so that a change of leader costs no relist.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "controller/config/logging.h"
#include "controller/kai/kai_reads.h"
#include "controller/kai/lookup_queue.h"
#include "controller/runtime/expectations.h"
#include "controller/runtime/held_since.h"
#include "controller/runtime/leader_election.h"
#include "controller/runtime/outage_log.h"
#include "controller/runtime/run_operator.h"
#include "controller/runtime/task_group.h"
#include "controller/runtime/workqueue.h"
#include "controller/serving/http_server.h"
#include "controller/serving/metrics.h"
#include "controller/watches/cluster_watches.h"
#include "controller/watches/dynamic_watches.h"
#include "controller/watches/kai_watches.h"
#include "controller/writes/event_recorder.h"
#include "controller/writes/executor.h"
#include "k8sclient/api/client.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/jobs.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/registry.h"

namespace gso {

// The one key of the queue, since a pass plans the whole fleet; and the controller's name in metrics.
inline const std::string kFleet = "fleet";

class Manager {
 public:
  // `runtime` has its optional parts filled in.
  Manager(Runtime runtime, Options options, boost::asio::any_io_executor executor);
  ~Manager();
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  // Watches, election, events, planning: all as tasks.
  void start();
  // Stops planning: unsent writes are not sent; writes already sent continue.
  void stop_planning();
  // Ends when the pass in progress has ended, or at the deadline (then its requests are cancelled). False: a write was
  // cancelled, and the API server can still execute it.
  boost::asio::awaitable<bool> finish_writes(k8s::MonoTime deadline);
  // Releases the Lease. Only after finish_writes() returned true: a successor writes at once (S4).
  boost::asio::awaitable<void> release_lease();
  // Ends everything else and waits for it. With `crash`, nothing is sent any more from the moment of the call.
  boost::asio::awaitable<void> end(bool crash);

  // Why the operator has to end by itself; on_fatal()'s function is called when it is set.
  [[nodiscard]] const std::optional<k8s::Error>& fatal() const { return fatal_; }
  void on_fatal(std::function<void()> notify) { notify_fatal_ = std::move(notify); }

  [[nodiscard]] ProbeAnswer ready() const;
  [[nodiscard]] ProbeAnswer live() const;
  [[nodiscard]] bool leading() const;
  [[nodiscard]] bool synced() const;
  // What is served below /debug.
  [[nodiscard]] DebugAnswer debug(const DebugRequest& request);
  [[nodiscard]] const World& world() const { return world_; }

 private:
  void wire_stores();
  void wire_election();
  void wire_execution();
  void fill_metrics(Metrics& metrics);
  void fill_fleet_metrics(Metrics& metrics);
  void fill_kai_metrics(Metrics& metrics);
  void fill_rollout_metrics(Metrics& metrics) const;
  struct StoreSize {
    const char* resource;
    std::size_t objects = 0;
    std::size_t bytes = 0;
  };
  [[nodiscard]] std::vector<StoreSize> store_sizes() const;
  // Who leads, as far as is known; empty: nobody.
  [[nodiscard]] std::string leader() const;
  [[nodiscard]] nlohmann::ordered_json debug_cache() const;
  [[nodiscard]] nlohmann::ordered_json debug_queue() const;
  [[nodiscard]] DebugAnswer debug_node(const std::string& name);
  void wake(Duration after);
  void view_complete(const std::string& resource, std::size_t objects);
  void watch_failed(const std::string& resource, const k8s::Error& error);
  void scopes_changed();
  void note_sync();
  void note_forbidden();

  boost::asio::awaitable<void> work();
  boost::asio::awaitable<void> pass();
  boost::asio::awaitable<bool> view_is_current();
  boost::asio::awaitable<void> resync();
  // Nodes whose pods are still to be listed, shared by a few readers.
  struct ConsumerRun {
    std::vector<std::string> nodes;
    bool listed = false;
    bool failed = false;
  };
  boost::asio::awaitable<bool> list_consumers(std::set<std::string> nodes);
  boost::asio::awaitable<void> list_some(std::shared_ptr<ConsumerRun> run);
  boost::asio::awaitable<k8s::Result<NodeConsumers>> consumers_of(std::string node);
  struct JobNodes {
    k8s::WallTime listed_at{};
    std::set<std::string> nodes;
  };
  boost::asio::awaitable<k8s::Result<std::set<std::string>>> nodes_of_job(Job job);
  [[nodiscard]] std::vector<Job> jobs_to_follow(const std::string& node, const std::vector<Pod>& pods) const;
  void note_evictions(const Execution& execution);
  static void keep_refusals(const NodeConsumers& before, NodeConsumers& found);
  void update_scopes();
  [[nodiscard]] std::optional<Plan> make_plan();
  // Whether the store of a resource has synced, or planners can work without it.
  [[nodiscard]] bool is_complete(const k8s::Gvr& gvr) const;
  void measure_reconciler(const Reconciler& reconciler, const Plan* part, Duration took);
  void finish_pass(const Plan& plan, const Execution& execution, bool consumers_listed);
  void note_convergence(const Plan& plan, bool quiet);
  void report(const Plan& plan, Execution& execution);
  void add_refusals(Execution& execution) const;
  void become_fatal(k8s::Error error);

  Runtime runtime_;
  Options options_;
  boost::asio::any_io_executor executor_;
  k8s::Clock* clock_;
  std::shared_ptr<Logger> log_;
  std::shared_ptr<Metrics> metrics_;
  std::shared_ptr<RuntimeView> view_;
  PlannerSettings settings_;

  OutageLog outages_;
  k8s::ApiClient client_;
  World world_;
  FleetIndex index_;
  Workqueue queue_;
  Expectations expectations_;
  std::unique_ptr<LeaderElector> elector_;
  std::unique_ptr<EventRecorder> recorder_;
  std::unique_ptr<Executor> plan_executor_;
  ClusterWatches cluster_;
  TaskGroup services_;  // Watches, election, events, timers.
  TaskGroup workers_;   // The pass loop.
  DynamicWatches dynamic_;
  KaiWatches kai_watches_;
  KaiReader kai_reader_;
  LookupQueue lookup_queue_;
  HeldSince held_since_;
  std::map<std::string, NodeConsumers> consumers_;
  std::map<std::string, JobNodes> jobs_;  // By Job::id.
  std::set<std::string> reported_findings_;
  std::set<std::string> reported_synced_;
  std::map<std::string, MonoTime> cordoned_since_;  // By node, as seen at scrapes.
  std::unique_ptr<k8s::Signal> timer_;              // Ends resync() at a stop.
  std::optional<MonoTime> unsettled_since_;
  std::optional<k8s::Error> fatal_;
  std::function<void()> notify_fatal_;
  bool scopes_dirty_ = true;
  bool was_synced_ = false;
  bool stopping_ = false;
  bool crashed_ = false;
};

}  // namespace gso
