// Manager: makes the parts of the operator, connects them, starts them and ends them in order. What a pass does is in
// fleet_loop.h, what the operator shows of itself in operator_pages.h.
//
// Guarantees
//  - Nothing is written without the Lease, and nothing after a crash (S4).
//  - Standbys keep their stores in step, so that a change of leader costs no relist.
//  - end() returns when nothing runs any more.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "controller/config/logging.h"
#include "controller/kai/kai_lookups.h"
#include "controller/reading/node_consumers.h"
#include "controller/runtime/expectations.h"
#include "controller/runtime/fleet_loop.h"
#include "controller/runtime/leader_election.h"
#include "controller/runtime/outage_log.h"
#include "controller/runtime/run_operator.h"
#include "controller/runtime/task_group.h"
#include "controller/serving/admission_review.h"
#include "controller/serving/http_message.h"
#include "controller/serving/metrics.h"
#include "controller/serving/routes.h"
#include "controller/watches/cluster_watches.h"
#include "controller/watches/dynamic_watches.h"
#include "controller/watches/kai_watches.h"
#include "controller/watches/partitioning_watches.h"
#include "controller/watches/scoped_watch.h"
#include "controller/writes/event_recorder.h"
#include "controller/writes/executor.h"
#include "k8sclient/api/client.h"
#include "k8sclient/clock.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

class OperatorPages;

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
  // Ends when the pass in progress and the writes that were sent have ended, or at the deadline (then they are
  // cancelled); writes that were not sent are dropped. False: a write was cancelled after it was sent, or has got no
  // answer a moment ago, and the API server can still execute it.
  boost::asio::awaitable<bool> finish_writes(MonoTime deadline);
  // Releases the Lease. Only after finish_writes() returned true: a successor writes at once (S4).
  boost::asio::awaitable<void> release_lease();
  // Ends everything else and waits for it. With `crash`, nothing is sent any more from the moment of the call.
  boost::asio::awaitable<void> end(bool crash);

  // Why the operator has to end by itself; on_fatal()'s function is called when it is set.
  [[nodiscard]] const std::optional<k8s::Error>& fatal() const { return fatal_; }
  void on_fatal(std::function<void()> notify) { notify_fatal_ = std::move(notify); }
  // A task of the process has thrown `what`, which is a bug: nobody does its work any more, so the operator ends.
  void task_failed(const std::string& what);

  [[nodiscard]] ProbeAnswer ready() const;
  [[nodiscard]] ProbeAnswer live() const;
  [[nodiscard]] bool leading() const;
  // Consulted just before each write is sent: the Lease is held, and nothing is ending. Errors: `cancelled`.
  [[nodiscard]] k8s::Result<void> may_write() const;
  // The same for Events, which are about the last writes: they are sent during a stop as well.
  [[nodiscard]] k8s::Result<void> may_report() const;
  // Of a client that sends its requests apart from the operator's own: the same metrics and retries.
  [[nodiscard]] const k8s::ClientOptions& client_settings() const { return client_.options(); }
  // What the webhook asks of the cluster, as it is at each review. No ConfigMap holds profiles as long as it is unknown
  // which do.
  [[nodiscard]] AdmissionParts admission() const;
  // What is served below /debug.
  [[nodiscard]] HttpAnswer debug(const HttpRequest& request) const;

 private:
  [[nodiscard]] WatchResources watch_resources();
  [[nodiscard]] WatchReports watch_reports(std::function<void()> complete);
  void make_elector();
  void record_leader();
  void watch_lease();
  void make_writers();
  void make_loop();
  // Who leads, as far as is known; empty: no replica.
  [[nodiscard]] std::string leader() const;
  void view_complete(const std::string& resource, std::size_t objects);
  void watch_failed(const std::string& resource, const k8s::Error& error);
  [[nodiscard]] bool can_land_still() const;
  void stopped_leading();
  void become_fatal(k8s::Error error);
  void report_clock(k8s::Duration ahead);

  Runtime runtime_;
  Options options_;
  boost::asio::any_io_executor executor_;
  k8s::ServerClock server_clock_;
  k8s::Clock* clock_;
  std::shared_ptr<Logger> log_;
  std::shared_ptr<Metrics> metrics_;
  std::shared_ptr<RuntimeView> view_;
  PlannerSettings settings_;

  OutageLog outages_;
  k8s::ApiClient client_;
  World world_;
  FleetIndex index_;
  Expectations expectations_;
  ClusterWatches cluster_;
  TaskGroup services_;  // Watches, election, events, timers.
  TaskGroup workers_;   // The pass loop.
  DaemonSetSearch search_;
  DynamicWatches dynamic_;
  KaiWatches kai_watches_;
  PartitioningWatches partitioning_watches_;
  KaiReader kai_reader_;
  LookupQueue lookup_queue_;
  NodeConsumersReader consumers_;
  std::unique_ptr<LeaderElector> elector_;  // Null: this replica leads without a Lease.
  k8s::Store<Lease> leases_;                // That of the election.
  ScopeCounts lease_counts_;
  std::shared_ptr<ScopedWatch> lease_watch_;  // Null where elector_ is.
  std::unique_ptr<EventRecorder> recorder_;
  std::unique_ptr<Executor> plan_executor_;
  std::unique_ptr<FleetLoop> loop_;
  std::unique_ptr<OperatorPages> pages_;
  std::set<std::string> reported_synced_;
  std::optional<k8s::Error> fatal_;
  std::function<void()> notify_fatal_;
  bool stopping_ = false;
  bool crashed_ = false;
};

}  // namespace gso
