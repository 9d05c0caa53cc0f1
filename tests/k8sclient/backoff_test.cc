// Backoffs and buckets, together client-go's rate limiter: its cases (util/workqueue default_rate_limiters_test.go),
// under their names.
#include "k8sclient/backoff.h"

#include <gtest/gtest.h>

#include <chrono>

namespace k8s::test::backoff_test {
namespace {

using namespace std::chrono_literals;

TEST(BackoffTest, ItemExponentialFailureRateLimiter_Doubles) {
  constexpr Backoff kBackoff{1ms, 1s};
  int failures = 0;
  for (const Duration want : {Duration(1ms), Duration(2ms), Duration(4ms), Duration(8ms), Duration(16ms)})
    EXPECT_EQ(kBackoff.after(failures++), want);
}

TEST(BackoffTest, ItemExponentialFailureRateLimiterOverFlow_StopsAtTheLongestWait) {
  constexpr Backoff kBackoff{1ms, 1000s};
  for (int i = 0; i < 5; ++i) EXPECT_LT(kBackoff.after(i), 1000s);
  EXPECT_EQ(kBackoff.after(1000), 1000s);
  EXPECT_EQ((Backoff{1s, Duration::max()}.after(1000)), Duration::max());
}

TEST(TokenBucketTest, MaxOf_TheBucketSlowsManyTogether) {
  TokenBucket bucket(10, 100);
  const MonoTime now{1s};
  for (int i = 0; i < 100; ++i) ASSERT_EQ(bucket.take(now), 0ms) << i;
  EXPECT_EQ(bucket.take(now), 100ms);
  EXPECT_EQ(bucket.take(now), 200ms);
  EXPECT_EQ(bucket.take(now + 10s), 0ms) << "refilled";
}

TEST(JitterTest, waits_are_of_the_asked_length) {
  Jitter jitter(1);
  for (int i = 0; i < 1000; ++i) {
    const Duration wait = jitter(1s, 1.0, 1.5);
    EXPECT_GE(wait, 1s);
    EXPECT_LT(wait, 1501ms);
  }
}

}  // namespace
}  // namespace k8s::test::backoff_test
