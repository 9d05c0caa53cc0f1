// Coroutines that end together, and a count of those that have.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "k8sclient/clock.h"

namespace gso {

// --- EndCounter: counts what ends side by side, for whoever waits for most of it and leaves behind what is slower.

// One thread only.
class EndCounter {
 public:
  explicit EndCounter(k8s::Clock* clock);
  // Something has ended.
  void note();
  // Waits until one more ends. False: none has ended within the patience.
  boost::asio::awaitable<bool> one_more(k8s::Duration patience);

 private:
  k8s::Clock* clock_;
  std::uint64_t ended_ = 0;
  std::unique_ptr<k8s::Signal> changed_;
};

// --- TaskGroup: coroutines that live and end together. Whoever spawns into a group joins it before anything that the
// coroutines use goes away. tasks.spawn(executor, watcher.run()); … tasks.cancel();          // optional: ends every
// wait and request of the tasks co_await tasks.join();   // all have returned One thread only.

class TaskGroup {
 public:
  explicit TaskGroup(k8s::Clock* clock);
  // Every task must have ended: join() first.
  ~TaskGroup();
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  // Starts the coroutine from the executor's queue (not inside this call).
  void spawn(boost::asio::any_io_executor executor, boost::asio::awaitable<void> task);
  // Cancels (Asio, terminal) the tasks of now: their current wait ends, and they unwind.
  void cancel();
  // Ends when no task is left. More may be spawned meanwhile. Not cancelled itself by its caller's cancellation. Throws
  // what failure() says, unless on_failure() has somebody who hears of it: no failure of a task is dropped.
  boost::asio::awaitable<void> join();

  // The same until `deadline`; false when tasks are left then.
  boost::asio::awaitable<bool> join_until(k8s::MonoTime deadline);

  [[nodiscard]] std::size_t size() const;
  // What a task threw, other than its cancellation: a bug. Empty when none did. on_failure() is called then.
  [[nodiscard]] const std::string& failure() const;
  void on_failure(std::function<void(const std::string& what)> report);

 private:
  struct State;
  k8s::Clock* clock_;
  std::shared_ptr<State> state_;
};

// Runs the tasks in their order, `most` of them side by side, and returns when those that were begun have ended. No
// further one is begun once `ends` says so.
boost::asio::awaitable<void> run_side_by_side(TaskGroup* group, std::vector<boost::asio::awaitable<void>> tasks,
                                              std::size_t most, std::function<bool()> ends);

}  // namespace gso
