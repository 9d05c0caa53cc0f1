// ChainPool: runs the chains of a schedule side by side, beyond the pass that handed them over. One slow answer delays
// its own chain, and no other.
//
//   co_await pool.add(chain, run);           // begins at once if a place is free
//   …                                        // `run` reports how it went
//   for (Chain& chain : pool.take_back()) …  // those that have not begun: the next pass plans them anew
//
// Guarantees
//  - No chain begins while `places` of them run; two chains of one subject never do.
//  - At most kMostWaiting chains wait: what has no room is planned again.
//  - A chain that has begun runs to its end, whatever pass is planned meanwhile, until cancel().
// One thread only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "controller/runtime/task_group.h"
#include "controller/writes/schedule.h"
#include "k8sclient/clock.h"

namespace gso {

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

}  // namespace gso
