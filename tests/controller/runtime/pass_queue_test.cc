// The queue of passes: client-go's cases for one key (util/workqueue queue_test.go, delaying_queue_test.go,
// rate_limiting_queue_test.go), under their names where there is one; and what becomes of tasks that fail.
#include "controller/runtime/pass_queue.h"

#include <chrono>
#include <stdexcept>
#include <string>

#include "controller/runtime/task_group.h"
#include "tests/controller/sim_time.h"

namespace gso::pass_queue_test {
namespace {

using namespace std::chrono_literals;

boost::asio::awaitable<void> consume(PassQueue* queue, k8s::Clock* clock, Duration work, int* passes) {
  for (;;) {
    const bool due = co_await queue->get();
    if (!due) co_return;
    ++*passes;
    if (work > Duration::zero()) co_await clock->sleep_for(work);
    queue->done();
  }
}

class PassQueueTest : public testing::Test {
 protected:
  Sim sim;
  PassQueue queue{&sim.clock};
  int passes = 0;
};

TEST_F(PassQueueTest, Basic_WhatIsAddedIsTakenAndNothingAfterAShutDown) {
  auto ended = sim.start(consume(&queue, &sim.clock, 3ms, &passes));
  for (int i = 0; i < 5; ++i) {
    queue.add();
    sim.clock.run_for(10ms);
  }
  EXPECT_EQ(passes, 5);
  EXPECT_FALSE(queue.queued());
  EXPECT_FALSE(*ended);
  queue.shut_down();
  queue.add();
  sim.clock.run_for(1s);
  EXPECT_TRUE(*ended) << "the get that waits";
  EXPECT_EQ(passes, 5);
}

TEST_F(PassQueueTest, AddWhileProcessing_APassThatIsAddedDuringOneFollowsItOnce) {
  queue.add();
  queue.add();
  ASSERT_TRUE(queue.try_get());
  queue.add();
  queue.add();
  EXPECT_FALSE(queue.try_get()) << "one at a time";
  EXPECT_FALSE(queue.queued());
  queue.done();
  EXPECT_TRUE(queue.queued());
  EXPECT_TRUE(queue.try_get());
  queue.done();
  EXPECT_FALSE(queue.try_get()) << "two adds are one (Collapse)";
}

TEST_F(PassQueueTest, QueueDrainageUsingShutDownWithDrainWithDirtyItem_HandsOutWhatIsQueuedOnceMore) {
  queue.add();
  ASSERT_TRUE(queue.try_get());
  queue.add();
  queue.add_after(1s);
  queue.shut_down();
  queue.done();
  ASSERT_TRUE(queue.try_get());
  queue.done();
  sim.clock.run_for(10s);
  EXPECT_FALSE(queue.try_get()) << "what waited for its time is dropped";
}

TEST_F(PassQueueTest, SimpleQueue_ADelayedPassComesWhenItIsDueAndNotBefore) {
  sim.start(consume(&queue, &sim.clock, 0ms, &passes));
  queue.add_after(50ms);
  sim.clock.run_for(49ms);
  EXPECT_EQ(passes, 0);
  EXPECT_EQ(queue.next_due(), sim.clock.monotonic() + 1ms);
  sim.clock.run_for(1ms);
  EXPECT_EQ(passes, 1);
  EXPECT_EQ(queue.next_due(), MonoTime::never());
  sim.clock.run_for(10s);
  EXPECT_EQ(passes, 1) << "once";
}

TEST_F(PassQueueTest, Deduping_ALaterTimeIsIgnoredAnEarlierOneWins) {
  sim.start(consume(&queue, &sim.clock, 0ms, &passes));
  queue.add_after(50ms);
  queue.add_after(70ms);
  sim.clock.run_for(60ms);
  EXPECT_EQ(passes, 1);
  sim.clock.run_for(20ms);
  EXPECT_EQ(passes, 1) << "the later one was dropped";
  queue.add_after(50ms);
  queue.add_after(30ms);
  sim.clock.run_for(40ms);
  EXPECT_EQ(passes, 2);
  sim.clock.run_for(20ms);
  EXPECT_EQ(passes, 2);
}

// A delay of nothing, or less, is none.
TEST_F(PassQueueTest, APassAtOnceLeavesTheTimeOfALaterOne) {
  sim.start(consume(&queue, &sim.clock, 0ms, &passes));
  queue.add_after(50ms);
  for (const Duration at_once : {0ms, -1000ms}) {
    queue.add_after(at_once);
    sim.clock.run_for(1ms);
  }
  queue.add();
  sim.clock.run_for(1ms);
  EXPECT_EQ(passes, 3);
  sim.clock.run_for(50ms);
  EXPECT_EQ(passes, 4);
}

TEST_F(PassQueueTest, RateLimitingQueue_BacksOffAndForgetStartsAfresh) {
  queue.add_rate_limited();
  queue.add_rate_limited();
  EXPECT_EQ(queue.num_requeues(), 2);
  EXPECT_EQ(queue.next_due(), sim.clock.monotonic() + 5ms) << "the earlier time stays";
  sim.clock.run_for(5ms);
  ASSERT_TRUE(queue.try_get());
  queue.done();
  queue.add_rate_limited();
  EXPECT_EQ(queue.next_due(), sim.clock.monotonic() + 20ms);
  queue.forget();
  EXPECT_EQ(queue.num_requeues(), 0);
}

TEST_F(PassQueueTest, Metrics_TimesAreThoseOfTheClock) {
  const auto metrics = std::make_shared<Metrics>();
  const Metrics::Labels depth{{"name", "fleet"}, {"controller", "fleet"}, {"priority", ""}};
  PassQueue measured(&sim.clock, metrics);
  measured.add();
  measured.add();
  EXPECT_EQ(metrics->value("workqueue_depth", depth), 1);
  sim.clock.run_for(50ms);
  ASSERT_TRUE(measured.try_get());
  EXPECT_EQ(metrics->value("workqueue_depth", depth), 0);
  sim.clock.run_for(30ms);
  EXPECT_EQ(measured.running(), 30ms);
  measured.done();
  EXPECT_EQ(measured.running(), 0ms);
  const std::string page = metrics->render(Metrics::Format::prometheus);
  const std::string of_fleet = R"({name="fleet",controller="fleet"} )";
  for (const char* line : {"adds_total", "queue_duration_seconds_count", "work_duration_seconds_count"})
    EXPECT_TRUE(page.contains("workqueue_" + std::string(line) + of_fleet + "1\n")) << line << "\n" << page;
  EXPECT_TRUE(page.contains("workqueue_queue_duration_seconds_sum" + of_fleet + "0.05\n")) << page;
  EXPECT_TRUE(page.contains("workqueue_work_duration_seconds_sum" + of_fleet + "0.03\n")) << page;
}

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
}  // namespace gso::pass_queue_test
