// TaskGroup: what becomes of tasks that fail.
#include "controller/runtime/task_group.h"

#include <chrono>
#include <stdexcept>
#include <string>

#include "tests/controller/sim_time.h"

namespace gso::task_group_test {
namespace {

using namespace std::chrono_literals;

boost::asio::awaitable<void> throw_something() {
  throw std::runtime_error("a bug");
  co_return;
}

boost::asio::awaitable<void> wait_a_day(k8s::Clock* clock) {
  co_await clock->sleep_for(24h);
}

boost::asio::awaitable<std::string> thrown_by_join(TaskGroup* tasks) {
  std::string what;
  try {
    co_await tasks->join();
  } catch (const std::exception& e) {
    what = e.what();
  }
  co_return what;
}

TEST(TaskGroupTest, WhatATaskThrowsReachesWhoeverJoinsUnlessItIsReportedAtOnceAndACancelledOneIsNoFailure) {
  Sim sim;
  TaskGroup tasks{&sim.clock};
  tasks.spawn(sim.io.get_executor(), throw_something());
  EXPECT_EQ(sim.run(thrown_by_join(&tasks)), "a bug");
  EXPECT_EQ(tasks.size(), 0U);
  std::string reported;
  tasks.on_failure([&reported](const std::string& what) { reported = what; });
  tasks.spawn(sim.io.get_executor(), throw_something());
  EXPECT_EQ(sim.run(thrown_by_join(&tasks)), "");
  EXPECT_EQ(reported, "a bug");
  TaskGroup cancelled{&sim.clock};
  cancelled.spawn(sim.io.get_executor(), wait_a_day(&sim.clock));
  sim.clock.run_for(1s);
  cancelled.cancel();
  EXPECT_EQ(sim.run(thrown_by_join(&cancelled)), "");
}

}  // namespace
}  // namespace gso::task_group_test
