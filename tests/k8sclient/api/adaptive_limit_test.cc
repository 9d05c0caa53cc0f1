// How many requests may be open, by what the server answered.
#include "k8sclient/api/request_lane.h"

#include <gtest/gtest.h>

#include <chrono>

namespace k8s::test::adaptive_limit_test {
namespace {

using namespace std::chrono_literals;

struct AdaptiveLimitTest : testing::Test {
  AdaptiveLimit limit{{.start = 16, .least = 1, .most = 64}};
  MonoTime now{1h};

  // One full round of answers that take `took` each.
  void round(Duration took) {
    const MonoTime begun = now;
    now = now + took;
    for (std::size_t left = limit.limit(); left > 0; --left) limit.served(begun, now, true);
  }
  void refuse(std::optional<Duration> retry_after = std::nullopt) {
    const MonoTime begun = now;
    now = now + 1ms;
    limit.refused(begun, now, retry_after);
  }
};

TEST_F(AdaptiveLimitTest, GrowsByAboutOneForEachFullRoundUpToItsMost) {
  round(10ms);
  EXPECT_EQ(limit.limit(), 16U);  // 16.9: requests are whole.
  round(10ms);
  EXPECT_EQ(limit.limit(), 17U);
  for (int i = 0; i < 200; ++i) round(10ms);
  EXPECT_EQ(limit.limit(), 64U);
}

TEST_F(AdaptiveLimitTest, DoesNotGrowWhileItIsNotUsedInFull) {
  for (int i = 0; i < 1000; ++i) limit.served(now, now + 10ms, false);
  EXPECT_EQ(limit.limit(), 16U);
}

TEST_F(AdaptiveLimitTest, HalvesOnceForAllRequestsThatOneOverloadRefuses) {
  const MonoTime begun = now;
  for (int i = 0; i < 16; ++i) limit.refused(begun, now + 5ms, 1s);
  EXPECT_EQ(limit.limit(), 8U);
  limit.refused(now + 6ms, now + 10ms, 1s);
  EXPECT_EQ(limit.limit(), 4U) << "sent after it had halved: another round";
}

TEST_F(AdaptiveLimitTest, NeverGoesBelowItsLeast) {
  for (int i = 0; i < 100; ++i) refuse();
  EXPECT_EQ(limit.limit(), 1U);
}

TEST_F(AdaptiveLimitTest, PausesForAsLongAsTheServerAsksUpToHalfAMinute) {
  refuse(7s);
  EXPECT_EQ(limit.paused_until() - now, 7s);
  refuse(1h);
  EXPECT_EQ(limit.paused_until() - now, 30s);
}

TEST_F(AdaptiveLimitTest, PausesLongerWithEachRefusedRoundUntilOneIsServed) {
  const Duration expected[] = {200ms, 400ms, 800ms, 1600ms, 3200ms, 6400ms, 8s, 8s};
  for (const Duration pause : expected) {
    now = now + 1min;
    refuse();
    EXPECT_EQ(limit.paused_until() - now, pause);
  }
  now = now + 1min;
  limit.served(now, now + 10ms, false);
  now = now + 20ms;
  refuse();
  EXPECT_EQ(limit.paused_until() - now, 200ms);
}

TEST_F(AdaptiveLimitTest, HalvesWhenTheMedianAnswerBecomesSlow) {
  for (int i = 0; i < 4; ++i) round(20ms);
  const std::size_t before = limit.limit();
  round(2s);
  EXPECT_LT(limit.limit(), before);
}

TEST_F(AdaptiveLimitTest, IgnoresASlowAnswerAmongQuickOnes) {
  for (int i = 0; i < 4; ++i) round(20ms);
  const std::size_t before = limit.limit();
  for (int i = 0; i < 100; ++i) {
    limit.served(now, now + (i % 10 == 0 ? 10s : Duration(20ms)), false);
  }
  EXPECT_EQ(limit.limit(), before) << "a webhook for one node";
}

TEST_F(AdaptiveLimitTest, AcceptsAServerThatIsSlowForGood) {
  for (int i = 0; i < 4; ++i) round(200ms);
  for (int i = 0; i < 2000; ++i) round(1s);
  EXPECT_EQ(limit.limit(), 64U);
}

TEST_F(AdaptiveLimitTest, IsBackAtItsStartWithinThirtySecondsAfterAMinuteOfRefusals) {
  const MonoTime end = now + 1min;
  while (now < end) {
    now = std::max(now, limit.paused_until());
    refuse(1s);
  }
  now = std::max(now, limit.paused_until());
  const MonoTime recovered = end + 30s;
  while (limit.limit() < 16 && now < recovered) round(50ms);
  EXPECT_EQ(limit.limit(), 16U);
}

}  // namespace
}  // namespace k8s::test::adaptive_limit_test
