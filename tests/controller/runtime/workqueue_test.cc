// The workqueue: client-go's cases (util/workqueue queue_test.go, delaying_queue_test.go, rate_limiting_queue_test.go,
// default_rate_limiters_test.go), under their names where there is one.
#include "controller/runtime/workqueue.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/controller/sim_time.h"

namespace gso {
namespace {

using namespace std::chrono_literals;

boost::asio::awaitable<void> consume(Workqueue* queue, k8s::Clock* clock, Duration work,
                                     std::vector<std::string>* out) {
  for (;;) {
    const std::optional<std::string> key = co_await queue->get();
    if (!key) co_return;
    out->push_back(*key);
    if (work > Duration::zero()) co_await clock->sleep_for(work);
    queue->done(*key);
  }
}

boost::asio::awaitable<void> wait_drained(Workqueue* queue) {
  co_await queue->drained();
}

class WorkqueueTest : public testing::Test {
 protected:
  Sim sim;
  Workqueue queue{&sim.clock};
};

TEST_F(WorkqueueTest, Basic_EveryKeyAddedByManyProducersIsHandedOutToTheConsumersAndNoneTwiceAtOnce) {
  std::vector<std::string> got;
  for (int i = 0; i < 10; ++i) sim.start(consume(&queue, &sim.clock, 3ms, &got));
  for (int i = 0; i < 50; ++i) queue.add("key" + std::to_string(i));
  sim.clock.run_for(1s);
  EXPECT_EQ(got.size(), 50U);
  EXPECT_EQ(queue.size(), 0U);
  queue.shut_down();
  queue.add("added after shutdown");
  sim.clock.run_for(1s);
  EXPECT_EQ(got.size(), 50U);
}

TEST_F(WorkqueueTest, AddWhileProcessing_AKeyAddedByItsOwnWorkerIsHandedOutAgain) {
  queue.add("foo");
  ASSERT_EQ(queue.try_get(), "foo");
  queue.add("foo");
  queue.add("foo");
  EXPECT_EQ(queue.try_get(), std::nullopt) << "one worker at a time";
  queue.done("foo");
  EXPECT_EQ(queue.try_get(), "foo");
  queue.done("foo");
  EXPECT_EQ(queue.try_get(), std::nullopt) << "two adds are one";
}

TEST_F(WorkqueueTest, Len_CountsEachKeyOnce) {
  queue.add("foo");
  EXPECT_EQ(queue.size(), 1U);
  queue.add("bar");
  EXPECT_EQ(queue.size(), 2U);
  queue.add("foo");
  EXPECT_EQ(queue.size(), 2U);
}

TEST_F(WorkqueueTest, Reinsert_AddedWhileProcessingComesBackAfterDoneAndEndsThere) {
  queue.add("foo");
  ASSERT_EQ(queue.try_get(), "foo");
  queue.add("foo");
  queue.done("foo");
  ASSERT_EQ(queue.try_get(), "foo");
  queue.done("foo");
  EXPECT_EQ(queue.size(), 0U);
}

TEST_F(WorkqueueTest, Collapse_TheSameKeyAddedTwiceIsHandedOutOnce) {
  queue.add("bar");
  queue.add("bar");
  ASSERT_EQ(queue.try_get(), "bar");
  queue.done("bar");
  EXPECT_EQ(queue.size(), 0U);
}

TEST_F(WorkqueueTest, QueueDrainageUsingShutDownWithDrain_EndsOnlyWhenTheWorkersAreDone) {
  queue.add("foo");
  queue.add("bar");
  ASSERT_EQ(queue.try_get(), "foo");
  ASSERT_EQ(queue.try_get(), "bar");
  queue.shut_down();
  auto drained = sim.start(wait_drained(&queue));
  sim.clock.run_for(1s);
  EXPECT_FALSE(*drained);
  queue.done("foo");
  sim.clock.run_for(1s);
  EXPECT_FALSE(*drained);
  queue.done("bar");
  sim.clock.run_for(1s);
  EXPECT_TRUE(*drained);
}

TEST_F(WorkqueueTest, QueueDrainageUsingShutDownWithDrainWithDirtyItem_HandsOutTheDirtyKeyOnceMore) {
  queue.add("foo");
  ASSERT_EQ(queue.try_get(), "foo");
  queue.add("foo");
  queue.shut_down();
  auto drained = sim.start(wait_drained(&queue));
  queue.done("foo");
  sim.clock.run_for(1s);
  EXPECT_FALSE(*drained);
  ASSERT_EQ(queue.try_get(), "foo");
  queue.done("foo");
  sim.clock.run_for(1s);
  EXPECT_TRUE(*drained);
}

TEST_F(WorkqueueTest, AWaitingGetEndsAtShutDown) {
  std::vector<std::string> got;
  auto ended = sim.start(consume(&queue, &sim.clock, 0ms, &got));
  sim.clock.run_for(1s);
  EXPECT_FALSE(*ended);
  queue.shut_down();
  sim.clock.run_for(1ms);
  EXPECT_TRUE(*ended);
}

TEST_F(WorkqueueTest, SimpleQueue_ADelayedKeyComesWhenItIsDueAndNotBefore) {
  std::vector<std::string> got;
  sim.start(consume(&queue, &sim.clock, 0ms, &got));
  queue.add_after("foo", 50ms);
  sim.clock.run_for(49ms);
  EXPECT_TRUE(got.empty());
  EXPECT_EQ(queue.waiting(), 1U);
  sim.clock.run_for(1ms);
  EXPECT_EQ(got, (std::vector<std::string>{"foo"}));
  sim.clock.run_for(10s);
  EXPECT_EQ(got.size(), 1U) << "once";
}

TEST_F(WorkqueueTest, Deduping_ALaterTimeIsIgnoredAnEarlierOneWins) {
  std::vector<std::string> got;
  sim.start(consume(&queue, &sim.clock, 0ms, &got));
  queue.add_after("foo", 50ms);
  queue.add_after("foo", 70ms);
  EXPECT_EQ(queue.waiting(), 1U);
  sim.clock.run_for(60ms);
  EXPECT_EQ(got.size(), 1U);
  sim.clock.run_for(20ms);
  EXPECT_EQ(got.size(), 1U) << "the later one was dropped";
  queue.add_after("foo", 50ms);
  queue.add_after("foo", 30ms);
  sim.clock.run_for(40ms);
  EXPECT_EQ(got.size(), 2U);
  sim.clock.run_for(20ms);
  EXPECT_EQ(got.size(), 2U);
}

TEST_F(WorkqueueTest, AddTwoFireEarly_TheEarlierOfTwoKeysComesFirst) {
  std::vector<std::string> got;
  sim.start(consume(&queue, &sim.clock, 0ms, &got));
  queue.add_after("third", 1s);
  queue.add_after("second", 50ms);
  queue.add_after("first", 50ms - 1ns);
  sim.clock.run_for(60ms);
  EXPECT_EQ(got, (std::vector<std::string>{"first", "second"}));
  sim.clock.run_for(2s);
  EXPECT_EQ(got.size(), 3U);
}

TEST_F(WorkqueueTest, ANegativeOrZeroDelayAddsAtOnce) {
  queue.add_after("foo", 0ms);
  queue.add_after("bar", -1s);
  EXPECT_EQ(queue.size(), 2U);
}

TEST_F(WorkqueueTest, RateLimitingQueue_BacksOffPerKeyAndForgetStartsAfresh) {
  queue.add_rate_limited("one");
  queue.add_rate_limited("one");
  EXPECT_EQ(queue.num_requeues("one"), 2);
  EXPECT_EQ(queue.next_due(), sim.clock.monotonic() + 5ms) << "the earlier time stays";
  queue.add_rate_limited("two");
  EXPECT_EQ(queue.num_requeues("two"), 1);
  queue.forget("one");
  EXPECT_EQ(queue.num_requeues("one"), 0);
}

TEST(RateLimiterTest, ItemExponentialFailureRateLimiter_DoublesAndForgets) {
  RateLimiter limiter({.base = 1ms, .longest = 1s, .refill_per_second = 1e6, .burst = 1e6});
  const MonoTime now{1s};
  for (const Duration want : {Duration(1ms), Duration(2ms), Duration(4ms), Duration(8ms), Duration(16ms)}) {
    EXPECT_EQ(limiter.when("one", now), want);
  }
  EXPECT_EQ(limiter.when("two", now), 1ms);
  EXPECT_EQ(limiter.num_requeues("one"), 5);
  limiter.forget("one");
  EXPECT_EQ(limiter.num_requeues("one"), 0);
  EXPECT_EQ(limiter.when("one", now), 1ms);
}

TEST(RateLimiterTest, ItemExponentialFailureRateLimiterOverFlow_StopsAtTheLongestWait) {
  RateLimiter limiter({.base = 1ms, .longest = 1000s, .refill_per_second = 1e6, .burst = 1e6});
  const MonoTime now{1s};
  for (int i = 0; i < 5; ++i) EXPECT_LT(limiter.when("one", now), 1000s);
  for (int i = 0; i < 1000; ++i) (void)limiter.when("overflow", now);
  EXPECT_EQ(limiter.when("overflow", now), 1000s);
}

TEST(RateLimiterTest, MaxOf_TheBucketSlowsManyKeysTogether) {
  RateLimiter limiter;  // 5 ms per key, 100 at once, then 10 per second.
  const MonoTime now{1s};
  for (int i = 0; i < 100; ++i) ASSERT_EQ(limiter.when("key" + std::to_string(i), now), 5ms) << i;
  EXPECT_EQ(limiter.when("a", now), 100ms);
  EXPECT_EQ(limiter.when("b", now), 200ms);
  EXPECT_EQ(limiter.when("c", now + 10s), 5ms) << "refilled";
}

TEST_F(WorkqueueTest, Metrics_TimesAreThoseOfTheClock) {
  std::vector<std::string> observed;
  WorkqueueHooks hooks;
  hooks.added = [&] { observed.emplace_back("added"); };
  hooks.taken = [&](Duration d) { observed.push_back("taken after " + k8s::format_go_duration(d)); };
  hooks.finished = [&](Duration d) { observed.push_back("finished after " + k8s::format_go_duration(d)); };
  Workqueue measured(&sim.clock, RateLimiter(), hooks);
  measured.add("foo");
  measured.add("foo");
  sim.clock.run_for(50ms);
  ASSERT_EQ(measured.try_get(), "foo");
  sim.clock.run_for(30ms);
  EXPECT_EQ(measured.longest_running(), 30ms);
  EXPECT_EQ(measured.unfinished_work(), 30ms);
  measured.done("foo");
  EXPECT_EQ(measured.longest_running(), 0ms);
  EXPECT_EQ(observed, (std::vector<std::string>{"added", "taken after 50ms", "finished after 30ms"}));
}

}  // namespace
}  // namespace gso
