// WriteQueue: runs the chains of plans side by side, beyond the pass that handed them over. One slow answer delays its
// own chain, and no other.
//
//   queue.add(executor, kind, chain, run);                 // begins at once if a place is free
//   …                                                      // `run` reports how it went
//   for (Chain& chain : queue.take_back(kind)) …           // those that have not begun: the next pass plans them anew
//
// Guarantees
//  - Each kind of writes has places of its own. No chain begins while so many of its kind run; two chains of one kind
//    and subject never do.
//  - At most kMostWaiting chains of a kind wait: what has no room is planned again.
//  - A chain that has begun runs to its end, whatever pass is planned meanwhile, until cancel().
// One thread only.
#pragma once

#include <algorithm>
#include <array>
#include <boost/asio/any_io_executor.hpp>
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
#include "k8sclient/api/writer.h"
#include "k8sclient/clock.h"

namespace gso {

class WriteQueue {
 public:
  static constexpr std::size_t kMostWaiting = 4096;
  using Run = std::function<boost::asio::awaitable<void>(Chain chain)>;
  using Running = std::map<std::string, Chain>;

  // `places` is asked whenever a chain of the kind could begin: it may change, down to 1.
  WriteQueue(k8s::Clock* clock, std::function<std::size_t(k8s::WriteKind)> places)
      : places_(std::move(places)), tasks_(clock) {}

  // Queues the chain and begins it if a place is free. Not while has(kind, chain.subject), nor without has_room().
  void add(const boost::asio::any_io_executor& executor, k8s::WriteKind kind, Chain chain, Run run);
  // A chain of that subject waits or runs.
  [[nodiscard]] bool has(k8s::WriteKind kind, const std::string& subject) const;
  [[nodiscard]] bool has_room(k8s::WriteKind kind) const { return of(kind).waiting.size() < kMostWaiting; }
  // Some chain has not begun.
  [[nodiscard]] bool some_wait(k8s::WriteKind kind) const { return !of(kind).waiting.empty(); }
  // Takes back the chains that have not begun, in order.
  std::vector<Chain> take_back(k8s::WriteKind kind);

  // The chains that run, by subject, as they were handed over.
  [[nodiscard]] const Running& running(k8s::WriteKind kind) const { return of(kind).running; }
  // Some chain runs, of any kind.
  [[nodiscard]] bool is_busy() const {
    return std::ranges::any_of(lines_, [](const Line& line) { return !line.running.empty(); });
  }

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
  struct Line {
    std::deque<Waiting> waiting;
    Running running;
  };
  [[nodiscard]] const Line& of(k8s::WriteKind kind) const { return lines_.at(static_cast<std::size_t>(kind)); }
  [[nodiscard]] Line& of(k8s::WriteKind kind) { return lines_.at(static_cast<std::size_t>(kind)); }
  void begin_waiting(const boost::asio::any_io_executor& executor, k8s::WriteKind kind);
  boost::asio::awaitable<void> run_to_end(boost::asio::any_io_executor executor, k8s::WriteKind kind, Waiting next);

  std::function<std::size_t(k8s::WriteKind)> places_;
  std::array<Line, k8s::kWriteKinds> lines_;
  TaskGroup tasks_;
};

}  // namespace gso
