// The operator as one call: manager, stores, planners and executor over a Transport and a Clock. Production
// (cli.cc) passes libcurl and the real clock; the simulated cluster passes its own two. Nothing else differs.
//
//   auto stop = clock->make_signal();
//   auto view = std::make_shared<RuntimeView>();
//   co_spawn(executor, run_operator({.transport = t, .clock = c, .stop = stop.get(), .view = view}, options), …);
//   …                       // view->leading, view->synced, view->writes
//   stop->notify();         // clean shutdown: the coroutine then ends by itself
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "controller/config/options.h"
#include "controller/serving/http_message.h"
#include "k8sclient/clock.h"
#include "k8sclient/transport/transport.h"
#include "k8sclient/value/error.h"
#include "reconcilers/model/plan.h"

namespace gso {

class Logger;
class Metrics;

// How long a node is named that loaded a text outside a rollout: as long as the alert GpuSharingLoadedUngated looks
// back.
inline constexpr k8s::Duration kUngatedNamed = std::chrono::minutes(15);

// What tests and probes may look at while the operator runs. Written by the operator only.
struct RuntimeView {
  bool started = false;
  bool synced = false;       // Every store that planners read has synced.
  bool leading = false;      // Holds the lease (or leader election is off).
  bool finished = false;     // run_operator has returned.
  std::string waits_for;     // Why a new leader does not plan yet: what it could not read.
  std::uint64_t passes = 0;  // Planning passes so far.
  std::uint64_t writes = 0;  // Write requests that the server answered, Lease and Events not counted.
  std::uint64_t lease_writes = 0;
  std::uint64_t event_writes = 0;
  bool idle = false;  // The last plan was empty, nothing is being written or looked up, and nothing is due now.
  Plan last_plan;     // What the last pass planned (before the executor's own filters).
  // Nodes that loaded a text outside a rollout, and when the operator has written that. Older ones than kUngatedNamed
  // are removed with the next one.
  std::map<std::string, k8s::MonoTime> loaded_ungated;
  int metrics_port = 0;  // Where /metrics and the probes listen; 0 when off.
  int webhook_port = 0;
  int health_port = 0;
  int debug_port = 0;
  DebugHandler debug;  // What /debug answers; null before and after the run.
};

struct RuntimeHooks {
  // Crash point: called after the n-th write (n from 1, RuntimeView::writes) was answered. Returning true ends the
  // operator as kill -9 would: nothing more is sent, the lease is not released, run_operator returns `cancelled`.
  std::function<bool(std::uint64_t n, const PlannedAction& action)> crash_after_write;
  // Called for each action just before its request is sent (after the lease check). For invariants in tests.
  std::function<void(const PlannedAction& action)> before_write;
};

struct Runtime {
  k8s::Transport* transport = nullptr;  // Must outlive the coroutine, as must clock and stop.
  k8s::Clock* clock = nullptr;
  // notify() once: clean shutdown (stop planning, finish writes in flight within shutdown_timeout, release the lease).
  k8s::Signal* stop = nullptr;
  // notify() once: ends the operator as kill -9 would, at whatever it is doing: nothing more is sent, the lease is not
  // released, run_operator returns `cancelled`. Optional; for tests.
  k8s::Signal* kill = nullptr;
  std::shared_ptr<RuntimeView> view = {};  // Optional.
  std::shared_ptr<Logger> log = {};        // Optional: silent when absent.
  std::shared_ptr<Metrics> metrics = {};   // Optional: a registry of its own when absent.
  RuntimeHooks hooks = {};
  std::string host;        // "host:port" of the API server, the label of rest_client_* metrics.
  std::string instance;    // The pod's or host's name, for Events. Empty: the identity.
  std::uint64_t seed = 0;  // For jitter; 0: from the system's entropy.
};

// Runs until `stop` is notified. Returns success after a clean shutdown; `invalid` when the options contradict each
// other; `unavailable` when the lease was lost and options.exit_on_lease_loss is set; `cancelled` after a crash point.
// An unreachable or refusing server is no reason to return: it is retried, logged and shown by /readyz.
// The caller's executor runs everything. Do not cancel the coroutine: notify `stop` or `kill`, and let it return.
boost::asio::awaitable<k8s::Result<void>> run_operator(Runtime runtime, Options options);

}  // namespace gso
