// Executor: sends a plan's actions to the API server, each with its precondition, and returns their results.
//
// Guarantees
//  - Order: creations and ConfigMap writes first; then each node's actions in the plan's order, nodes side by side (as
//    many as Parts::places says); statuses last. A disruptive action is sent only after every earlier action of its
//    node and every record that it rests on (UnwrittenRecords) has been written.
//  - Records, nodes, and statuses have places of their own: node PATCHes that hang delay no record and no status, and
//    neither delays them.
//  - A node whose answers take longer than `patience` delays no other: execute() returns without it, and its actions
//    go on beside the next passes. nodes_being_written() names it until the stores show the result, and nothing is sent
//    to it twice. What became of it is in the result of the next execute(). The same holds for the statuses of an
//    object. What ends while another plan is executed is not known to that plan: it writes nothing more to that subject
//    (S6).
//  - Records are waited for no longer than `record_patience`. Then the plan goes on without what rests on the others:
//    no plan that was made before the answer sends it, because a pause or an edit can have arrived by then. The answer
//    asks for a new plan.
//  - A plan of PlanDraft::kMostActions or more may have left nodes for the next one: execute() returns once all of its
//    chains have begun, so that the server need not wait for that plan. Their answers are reported like those of a slow
//    node.
//  - ConfigMaps and statuses are written with the resourceVersion that they were planned from: what somebody else has
//    written since is not overwritten (409), but planned from anew.
//  - Every write passes the gate (lease and renew deadline) just before it is handed to the transport, and has ended
//    before another leader may act.
//  - Before the first disruptive action of a node it reads the Node live, unless that action is a patch with the
//    resourceVersion of the view: then the server compares. When the Node differs from the view that the plan was made
//    from, nothing disruptive is sent; the store gets the live object and the pass is asked for again.
//  - Reservation pods of KAI are deleted right after a last look at fresh lists has confirmed them, with uid and
//    resourceVersion as preconditions; such a request is sent once, and again only after another look.
//  - No pod of a protected namespace (cluster/discovery.h) is evicted, whatever the plan has.
//  - After a write, Expectations::current() is false until the stores show it. The answer to a status shows it.
//  - Failures stay with their object: it backs off (or, when forbidden or invalid, waits long and is reported), the
//    others go on.
#pragma once

#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/config/logging.h"
#include "controller/runtime/expectations.h"
#include "controller/runtime/run_operator.h"
#include "controller/runtime/task_group.h"
#include "controller/serving/metrics.h"
#include "controller/writes/schedule.h"
#include "controller/writes/write_queue.h"
#include "k8sclient/api/writer.h"
#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

struct ExecutorOptions {
  bool dry_run = false;
  // Of one write, the wait for its turn included. An API server waits 10 seconds for a webhook that does not answer
  // (timeoutSeconds, if nobody set it) before it does without; who has given up by then never writes.
  Duration write_timeout = std::chrono::seconds(12);
  // How long execute() waits after the last answer about a node for the next one. Nodes that are slower than that are
  // left behind; one pass can plan from the results of all others.
  Duration patience = std::chrono::milliseconds(250);
  // How long execute() waits for the answers to creations and ConfigMap writes. An API server that keeps to Kubernetes'
  // objectives answers 99 of 100 writes within a second, and a plan is not executed when its view is older than that.
  Duration record_patience = std::chrono::seconds(1);
  Duration status_interval = std::chrono::seconds(1);  // Between two statuses of one object in one phase.
  Duration terminal_retry = std::chrono::minutes(2);   // After forbidden or invalid.
  Duration eviction_retry = std::chrono::seconds(10);  // After a PodDisruptionBudget refused.
  Duration failed_lately = std::chrono::minutes(5);    // How long other nodes start before one whose patch failed.
  ObjectKey state_config_map;    // The operator owns all its keys, and all keys of the shards of the record.
  bool state_in_memory = false;  // The state ConfigMap is kept in the view only, and gone with the process.
};

// Decides, at the last moment, whether a write may be sent.
struct WriteGate {
  std::function<k8s::Result<void>()> check = [] { return k8s::Result<void>{}; };
  // When writes in flight must have ended; never() without leader election.
  std::function<MonoTime()> end_by = [] { return MonoTime::never(); };
};

struct Execution {
  std::size_t sent = 0;       // Answered by the server, whatever the answer.
  std::size_t succeeded = 0;  // Including those that had nothing left to do.
  std::size_t failed = 0;
  std::size_t deferred = 0;               // Not sent: backoff, gate, held, stale view, status rate.
  bool replan = false;                    // The view was refreshed, or a conflict was seen: plan again at once.
  bool crashed = false;                   // The crash hook said so.
  std::optional<Duration> requeue_after;  // When the first deferred or failed one may be tried again.
  // What was answered to an eviction, by node and pod uid.
  struct EvictionAnswer {
    std::string text;        // Empty: the pod was let go.
    bool forbidden = false;  // The account is not allowed to evict; else a PodDisruptionBudget forbids the eviction.
  };
  std::map<std::string, std::map<std::string, EvictionAnswer>> evictions;
  std::vector<Finding> findings;    // Terminal errors, refused evictions, clashes.
  std::vector<RecordEvent> events;  // The same for `kubectl describe`.
  // Nodes (empty: another object) whose disruptions this plan does not send, because a record that they rest on is not
  // written. They are planned anew once it is.
  std::set<std::string> without_record;
  // Adds what another one found, but for its `without_record`: that can have been said of another plan.
  void add(Execution&& other);
};

class Executor {
 public:
  struct Parts {
    k8s::Writer* client = nullptr;
    k8s::Clock* clock = nullptr;
    World* world = nullptr;
    const PlannerSettings* settings = nullptr;  // With the world, they name the namespaces where no pod is evicted.
    Expectations* expectations = nullptr;
    std::shared_ptr<Logger> log;
    std::shared_ptr<Metrics> metrics;
    WriteGate gate;
    // How many chains of one kind run side by side, at least 1: as many as the API server bears (RequestLane::limit).
    std::function<std::size_t(k8s::WriteKind)> places = [](k8s::WriteKind) { return std::size_t{16}; };
    // The final check before KAI reservations are deleted: which deletions are still justified. None is deleted without
    // it.
    std::function<boost::asio::awaitable<std::set<ObjectKey>>(std::vector<PlannedAction> deletions)> still_due;
    RuntimeHooks hooks;
    std::shared_ptr<RuntimeView> view;
    // Called when actions of a node have ended after their execute() had returned. Note what it says of evictions
    // before the next plan: no store shows them. The next execute() returns it, too.
    std::function<void(const Execution& result)> ended_late = [](const Execution&) {};
  };
  Executor(Parts parts, ExecutorOptions options);

  // Executes a plan's actions; returns when every request has been answered, except for nodes that are left behind (see
  // above). Not to be called again before. Events are not sent here: they are in the plan for the recorder.
  boost::asio::awaitable<Execution> execute(std::vector<PlannedAction> actions);
  // For World::nodes_being_written: nodes with actions that have begun, or whose result the stores do not show yet.
  [[nodiscard]] NodesBeingWritten nodes_being_written();
  // All actions have ended; false: some have not by the deadline.
  boost::asio::awaitable<bool> finish(MonoTime deadline);
  // The same for writes that were sent. What waits for its turn is not waited for: call this once the gate refuses it.
  boost::asio::awaitable<bool> finish_sent(MonoTime deadline);

  // Records, actions of nodes, or statuses go on beside the passes.
  [[nodiscard]] bool is_busy() const { return queue_.is_busy(); }
  // Writes that were sent and are not answered yet.
  [[nodiscard]] std::int64_t in_flight() const { return in_flight_; }
  // How many writes the API server has answered within the last second, which is what it can be given for the next one
  // (Snapshot::answered_lately).
  [[nodiscard]] std::size_t answered_lately();
  // When the last write ended whose answer was lost: the API server can still execute it. Empty: there was none.
  [[nodiscard]] std::optional<MonoTime> answer_lost_at() const { return answer_lost_at_; }
  [[nodiscard]] bool crashed() const { return crashed_; }
  // Writes for a node's change that are planned still and were answered by 403: by node, with the missing right.
  [[nodiscard]] std::map<std::string, std::string> refused_writes() const;
  // For Snapshot::failed_patches.
  [[nodiscard]] std::set<std::string> failed_patches();
  // How many things are remembered from pass to pass: what backs off, what was refused, statuses just sent, lines of a
  // dry run. What is over and not planned any more is forgotten at the next pass.
  [[nodiscard]] std::size_t remembered() const { return pauses_.size() + dry_run_logged_.size(); }
  // Cancels the requests that have no answer yet and what waits for its turn; execute() and finish() return soon.
  void cancel() {
    queue_.cancel();
    reservations_.cancel();
  }
  // As if the process had died: nothing more is sent.
  void crash() {
    crashed_ = true;
    cancel();
  }

 private:
  // What the write of a ConfigMap or a status was computed from, as the plan saw it.
  struct Basis {
    std::shared_ptr<const k8s::ObjectMeta> meta;
    std::shared_ptr<const ConfigMap> config_map;
    std::shared_ptr<const std::string> status;
    std::string written;  // The version that an earlier write of the same plan has made.
    [[nodiscard]] const std::string& version() const { return written.empty() ? meta->resource_version : written; }
  };
  using BasisKey = std::pair<std::string, ObjectKey>;  // Kind and name.
  // One execute(): what its chains share, also those that go on after it has returned.
  struct Pass {
    Schedule schedule;
    UnwrittenRecords unwritten;  // When the first chain of a node could begin, and what has failed since.
    std::map<std::string, std::shared_ptr<const Node>> planned_from;  // Nodes to disrupt, as the plan saw them.
    std::map<BasisKey, Basis> bases;                                  // Of objects that exist.
    std::array<std::size_t, k8s::kWriteKinds> queued{};               // Its chains in the queue, by kind.
    boost::asio::any_io_executor executor;                            // Which runs its chains.
    bool full = false;                                                // Of the plan: more is to be planned.
    bool left = false;                                                // execute() has returned.
    [[nodiscard]] std::size_t& queued_of(k8s::WriteKind kind) { return queued.at(static_cast<std::size_t>(kind)); }
  };
  // What is found on the way, by execute() itself or by one chain. That of a chain is handed on when the chain ends: to
  // its execute() if that still waits, else to the next one.
  struct Run {
    std::shared_ptr<Pass> pass;
    Execution result;
  };
  using RunPtr = std::shared_ptr<Run>;
  // Gives the chains of records to the queue, waits for them for a while, and notes which are not written.
  boost::asio::awaitable<void> run_records(RunPtr run);
  void note_unwritten(const RunPtr& run, const std::vector<PlannedAction>& steps);
  // The same of nodes and the last look at reservations, or of statuses, which do not wait behind nodes.
  boost::asio::awaitable<void> run_chains(RunPtr run, k8s::WriteKind kind, std::vector<Chain> chains);
  // Why what is planned of that subject is not sent, as gpusharing_writes_deferred_total names it; empty: it is. Chains
  // of the subject go on beside, or have ended since this plan was made; or the queue has no room.
  [[nodiscard]] const char* kept_from(k8s::WriteKind kind, const std::string& subject) const;
  // Gives the chain to the queue. False: it is not sent, and why is counted.
  bool queue(const RunPtr& run, k8s::WriteKind kind, Chain chain);
  boost::asio::awaitable<void> run_beside(RunPtr run, k8s::WriteKind kind, Chain chain);
  // Also of one that was cancelled or has thrown.
  void note_end(const RunPtr& run, k8s::WriteKind kind, const std::string& subject, Execution found);
  boost::asio::awaitable<void> wait_for(RunPtr run, k8s::WriteKind kind);
  // After the wait: the next pass plans anew what has found no place, because by then the view of it would be old.
  std::vector<Chain> take_back(const RunPtr& run, k8s::WriteKind kind);
  boost::asio::awaitable<void> run_chain(RunPtr run, Chain chain);
  boost::asio::awaitable<void> collect_reservations(RunPtr run, Chain chain);
  boost::asio::awaitable<bool> view_of_node_holds(RunPtr run, std::string node);
  // Shared by the functions on its way to the client: copying the patch of a Node for each costs as much as sending it.
  using Planned = std::shared_ptr<const PlannedAction>;
  // False: this chain goes no further in this pass. True also if nothing is left to do: the object is gone, or exists.
  boost::asio::awaitable<bool> perform(RunPtr run, Planned planned);
  // `sent`: set, and the write counted as being in flight, at the moment when it is sent.
  boost::asio::awaitable<k8s::Result<std::string>> send(RunPtr run, Planned planned, bool* sent);
  void count_unanswered(std::int64_t change);
  boost::asio::awaitable<k8s::Result<std::string>> send_object(RunPtr run, Planned planned, k8s::WriteOptions options);
  boost::asio::awaitable<k8s::Result<std::string>> send_pod(Planned planned, k8s::WriteOptions options);

  [[nodiscard]] std::optional<Duration> not_before(const PlannedAction& planned);
  void note_dropped(const PatchStatus& status, const std::string& answer);
  void succeed(const RunPtr& run, const PlannedAction& planned, const std::string& answer);
  // As perform().
  bool fail(const RunPtr& run, const PlannedAction& planned, const k8s::Error& error);
  // The subject, which concerns the node, is not tried again for `wait`.
  void wait_out(const RunPtr& run, const std::string& subject, const std::string& node, Duration wait);
  // The same for longer after each failure, for `wait` at least.
  void back_off(const RunPtr& run, const std::string& subject, const std::string& node, std::optional<Duration> wait);
  void give_up(const RunPtr& run, const PlannedAction& planned, const k8s::Error& error);
  void report(const RunPtr& run, const PlannedAction& planned, const k8s::Error& error);
  void report_remembered(const RunPtr& run);
  void forget_what_is_over(const std::vector<PlannedAction>& actions);
  // The subject whose backoff grows when the live read before a disruption fails.
  [[nodiscard]] static std::string read_of_node(const std::string& node);
  void defer(const RunPtr& run, const char* cause, std::size_t count, std::optional<Duration> wait);
  void note_dry_run(const std::vector<PlannedAction>& actions);
  void keep_state_in_memory(std::vector<PlannedAction>& actions);
  [[nodiscard]] bool is_state(const ObjectKey& config_map) const;  // The state ConfigMap, or a shard of the record.
  void note_bases(Pass& pass, const std::vector<PlannedAction>& actions) const;
  // Null: the object does not exist yet.
  [[nodiscard]] static const Basis* basis_of(const RunPtr& run, const Action& action);
  [[nodiscard]] static std::string patch_of(const Action& action, const Basis* basis);
  [[nodiscard]] std::string apply_body(const WriteConfigMap& write, const Basis* basis) const;
  // The node has loaded a text outside a rollout: the alert names it.
  void note_ungated(const std::string& node);
  void count(const PlannedAction& planned, const std::string& result);

  Parts parts_;
  ExecutorOptions options_;
  struct Refused {
    PlannedAction action;
    k8s::Error error;
  };
  // Why a subject is not sent for a while: it failed, was refused for good, or is a status that was written just now.
  struct Pause {
    MonoTime until;
    std::string node{};                  // Whose action it is.
    int failures = 0;                    // In a row.
    std::optional<Refused> refused{};    // Another action of the subject is sent.
    std::optional<std::string> phase{};  // Of the status that was written: one of another phase is sent.
  };
  std::map<std::string, Pause> pauses_;             // By subject of one action, or "get nodes n".
  std::map<std::string, MonoTime> failed_patches_;  // By node: when its last patch failed.
  std::set<std::string> dry_run_logged_;
  std::int64_t in_flight_ = 0;
  std::unique_ptr<k8s::Signal> answered_;  // No write waits for its answer any more.
  std::optional<MonoTime> answer_lost_at_;
  std::uint64_t writes_ = 0;
  std::deque<MonoTime> answers_;  // Of the last second.
  std::uint64_t remembered_ = 0;  // Versions of the state that is kept in memory.
  bool crashed_ = false;
  Execution late_;           // Of actions that ended after their execute() had returned.
  EndCounter chains_ended_;  // Whatever plan they are of.
  // Subjects of chains of earlier plans that have ended since the last execute() began.
  std::set<std::string> ended_since_planned_;
  TaskGroup reservations_;  // Of the deletions that a last look has confirmed.
  WriteQueue queue_;        // Records; nodes and the last look; statuses.
};

// The patch, if it writes a change to a Node; else null.
[[nodiscard]] std::shared_ptr<const PatchNode> change_in(const PlannedAction& planned);
// Names one object and verb ("patch nodes n1"): what backs off when it fails, and how logs call it.
[[nodiscard]] std::string subject_of(const PlannedAction& planned);

}  // namespace gso
