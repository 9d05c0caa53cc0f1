// FleetLoop: the queue and the planning passes. One pass plans the whole fleet from the current stores, executes the
// plan, reports what it found, and says when to look again.
//
// Guarantees
//  - A reconciler plans only when every store that it reads has synced, and only while this replica holds the Lease.
//    From a view that is not current (k8s::ViewState) nothing new is started.
//  - A new leader first reads what the leader before has written last. After the server went back in time, every store
//    lists again before anything is planned.
//  - No pass plans over stores that do not show the operator's own writes to the record, policies and rollouts yet (a
//    record or status that is not answered yet is like one that failed: what rests on the record is not sent), and no
//    pass plans anything for a node while they do not show its own: the other nodes go on.
//  - Events that arrive within batch_window of each other share one pass; a pass never overlaps another.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "controller/config/logging.h"
#include "controller/config/options.h"
#include "controller/kai/kai_lookups.h"
#include "controller/reading/node_consumers.h"
#include "controller/runtime/expectations.h"
#include "controller/runtime/held_since.h"
#include "controller/runtime/outage_log.h"
#include "controller/runtime/pass_queue.h"
#include "controller/runtime/run_operator.h"
#include "controller/serving/metrics.h"
#include "controller/watches/cluster_watches.h"
#include "controller/watches/daemonset_search.h"
#include "controller/watches/dynamic_watches.h"
#include "controller/watches/kai_watches.h"
#include "controller/watches/partitioning_watches.h"
#include "controller/writes/event_recorder.h"
#include "controller/writes/executor.h"
#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/registry.h"

namespace gso {

class FleetLoop {
 public:
  // Everything that is passed as a pointer must outlive the loop.
  struct Parts {
    k8s::Clock* clock = nullptr;
    World* world = nullptr;
    FleetIndex* index = nullptr;  // Follows `world` from the construction of the loop on.
    const PlannerSettings* settings = nullptr;
    const Options* options = nullptr;
    ClusterWatches* cluster = nullptr;
    DaemonSetSearch* search = nullptr;
    DynamicWatches* dynamic = nullptr;
    KaiWatches* kai = nullptr;
    PartitioningWatches* partitioning = nullptr;
    LookupQueue* lookups = nullptr;
    NodeConsumersReader* consumers = nullptr;
    Expectations* expectations = nullptr;
    Executor* executor = nullptr;
    EventRecorder* recorder = nullptr;
    std::function<void(boost::asio::awaitable<void>)> spawn;  // Runs a task beside the loop, until the operator ends.
    std::function<bool()> leading;                            // This replica plans and writes.
    std::function<bool()> clock_in_doubt;      // The time is not known: nothing is planned, for a minute at most.
    std::function<void(k8s::Error)> on_fatal;  // The operator cannot go on.
    std::shared_ptr<Logger> log;
    std::shared_ptr<Metrics> metrics;
    std::shared_ptr<RuntimeView> view;
  };
  explicit FleetLoop(Parts parts);
  FleetLoop(const FleetLoop&) = delete;
  FleetLoop& operator=(const FleetLoop&) = delete;

  // Passes, until stop(); the one in progress ends first.
  boost::asio::awaitable<void> run();
  // Asks for a pass every resync_period, until stop().
  boost::asio::awaitable<void> resync();
  void stop();

  // Asks for a pass after this time.
  void wake(Duration after);
  // Something that a store holds or a watch has reported has changed: a pass after batch_window.
  void note_change() { wake(parts_.options->batch_window); }
  // Actions of a node have ended after their pass: a pass that plans from their result.
  void note_late(const Execution& result);
  // The namespaces that are watched have changed.
  void note_scopes_changed();
  // A search for DaemonSets has ended.
  void note_searched() {
    scopes_dirty_ = true;
    note_change();
  }
  // This replica leads from now on.
  void note_leads();
  // This replica does not lead any more: timers start again when it leads the next time.
  void note_lost_lead() { held_since_.reset(); }
  // The server is behind what it said before.
  void note_back_in_time();
  // Nobody has changed a node until now (max-mode Observe): the deadlines of changes in progress start now.
  void note_only_observed() { only_observed_ = true; }

  // Every store that planners read has synced, or they can work without it.
  [[nodiscard]] bool synced() const;
  // For /metrics and /debug.
  [[nodiscard]] const Parts& parts() const { return parts_; }
  [[nodiscard]] const PassQueue& queue() const { return queue_; }
  [[nodiscard]] const HeldSince& held_since() const { return held_since_; }

 private:
  void follow_stores();
  // Before a pass: which watches are wanted, and what they have learned.
  void note_forbidden();
  void update_scopes();
  void note_sync();
  void note_views();
  [[nodiscard]] bool is_listed_again();
  // One pass.
  boost::asio::awaitable<void> pass();
  [[nodiscard]] bool view_is_current();
  boost::asio::awaitable<void> settle(ObjectRef object);
  boost::asio::awaitable<void> read_as_new_leader();
  void note_nodes_being_written();
  [[nodiscard]] std::optional<Plan> make_plan();
  void warn_of_unused_mode();
  [[nodiscard]] bool is_complete(const k8s::Gvr& gvr) const;
  void measure_reconciler(const Reconciler& reconciler, const Plan* part, Duration took);
  // Its end.
  void report(const Plan& plan, Execution& execution);
  void report_refusals();
  void add_refusals(Execution& execution) const;
  void report_findings(const Plan& plan, const Execution& execution);
  void finish_pass(const Plan& plan, const Execution& execution, bool consumers_listed);
  void note_convergence(const Plan& plan, bool quiet);

  Parts parts_;
  PassQueue queue_;
  HeldSince held_since_;
  bool only_observed_ = false;
  bool mode_was_compared_ = false;
  std::unique_ptr<k8s::Signal> timer_;  // Ends resync() at a stop.
  ReportedFindings reported_findings_;
  std::optional<MonoTime> unsettled_since_;
  std::map<std::string, WallTime> stale_since_;  // By view, of those that are not current.
  bool is_new_leader_ = false;                   // It has not read yet what the leader before has written.
  enum class Relisting : std::uint8_t { no, asked, begun } relisting_ = Relisting::no;  // The server went back in time.
  bool scopes_dirty_ = true;
  bool was_synced_ = false;
  bool stopping_ = false;
};

}  // namespace gso
