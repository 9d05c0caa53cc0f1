// The rate limiter: client-go's cases (util/workqueue default_rate_limiters_test.go), under their names.
#include "controller/runtime/token_bucket.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace gso::rate_limiter_test {
namespace {

using namespace std::chrono_literals;

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

}  // namespace
}  // namespace gso::rate_limiter_test
