// What the executor counts and keeps: places for the writes of a node, answers, and records that could not be written.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/runtime/task_group.h"
#include "controller/writes/schedule.h"
#include "k8sclient/clock.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// --- AnswerCount: how many writes the API server has answered within the last second, which is what it can be given
// for the next one.

// One thread only.
class AnswerCount {
 public:
  void note(k8s::MonoTime now) {
    forget_before(now);
    answered_.push_back(now);
  }
  [[nodiscard]] std::size_t of_last_second(k8s::MonoTime now) {
    forget_before(now);
    return answered_.size();
  }

 private:
  void forget_before(k8s::MonoTime now) {
    while (!answered_.empty() && now - answered_.front() >= std::chrono::seconds(1)) answered_.pop_front();
  }

  std::deque<k8s::MonoTime> answered_;
};

// --- ChainPool: runs the chains of a schedule side by side, beyond the pass that handed them over. One slow answer
// delays its own chain, and no other. co_await pool.add(chain, run);           // begins at once if a place is free …
// // `run` reports how it went for (Chain& chain : pool.take_back()) …  // those that have not begun: the next pass
// plans them anew Guarantees - No chain begins while `places` of them run; two chains of one subject never do. - At
// most kMostWaiting chains wait: what has no room is planned again. - A chain that has begun runs to its end, whatever
// pass is planned meanwhile, until cancel(). One thread only.

class ChainPool {
 public:
  static constexpr std::size_t kMostWaiting = 4096;
  using Run = std::function<boost::asio::awaitable<void>(Chain chain)>;

  // `places` is asked whenever a chain could begin: it may change, down to 1.
  ChainPool(k8s::Clock* clock, std::function<std::size_t()> places) : places_(std::move(places)), tasks_(clock) {}

  // Queues the chain and begins it if a place is free. Not while has(chain.subject), nor without has_room().
  boost::asio::awaitable<void> add(Chain chain, Run run);
  // A chain of that subject waits or runs.
  [[nodiscard]] bool has(const std::string& subject) const;
  [[nodiscard]] bool has_room() const { return waiting_.size() < kMostWaiting; }
  // Some chain has not begun.
  [[nodiscard]] bool some_wait() const { return !waiting_.empty(); }
  // Takes back the chains that have not begun, in order.
  std::vector<Chain> take_back();

  // The chains that run, by subject, as they were handed over.
  [[nodiscard]] const std::map<std::string, Chain>& running() const { return running_; }

  // Cancels the chains that run; those that wait are forgotten.
  void cancel();
  // True once no chain runs; false: some do at the deadline.
  boost::asio::awaitable<bool> join_until(k8s::MonoTime deadline) { return tasks_.join_until(deadline); }
  // What a chain threw, other than its cancellation: a bug. Empty when none did. on_failure() is called then.
  [[nodiscard]] const std::string& failure() const { return tasks_.failure(); }
  void on_failure(std::function<void(const std::string& what)> report) { tasks_.on_failure(std::move(report)); }

 private:
  struct Waiting {
    Chain chain;
    Run run;
  };
  void begin_waiting(const boost::asio::any_io_executor& executor);
  boost::asio::awaitable<void> run_to_end(boost::asio::any_io_executor executor, Waiting next);

  std::function<std::size_t()> places_;
  std::deque<Waiting> waiting_;
  std::map<std::string, Chain> running_;
  TaskGroup tasks_;
};

// --- UnwrittenRecords: the records of a plan that are not written, because they were refused, must wait, or are not
// answered yet; and which disruptions rest on them. Pure: no I/O, no clock. - On a SharingPolicy or SharingRollout
// rest the nodes whose change belongs to that policy. - On a ConfigMap rests every disruption: the record has the
// stops and canaries of all policies, and the keys of inline profiles are read by whatever pod starts. - What belongs
// to no policy that can be read (a reservation, the restart of a DaemonSet, the standalone MPS daemon of a node) rests
// on each record.

// Whether a plan's disruptions can rest on the action: creations, and writes of the operator's own data. Keys in the
// ConfigMap of somebody else are none: what needs them is planned once they are there.
[[nodiscard]] bool is_record(const Action& action);

class UnwrittenRecords {
 public:
  // Ignored unless is_record().
  void add(const PlannedAction& record);
  // The chain's disruptive steps must not be sent. `world` has the changes that nodes are in.
  [[nodiscard]] bool hold(const Chain& chain, const World& world) const;

 private:
  bool all_ = false;
  std::set<std::string, std::less<>> policies_;
};

}  // namespace gso
