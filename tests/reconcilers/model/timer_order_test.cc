#include "reconcilers/model/timer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>

namespace gso::timer_order_test {
namespace {

// What it must be, whatever the order was.
void expect_in_order(std::vector<TimerKey> timers) {
  std::vector<TimerKey> wanted = timers;
  std::ranges::sort(wanted);
  const auto repeated = std::ranges::unique(wanted);
  wanted.erase(repeated.begin(), repeated.end());
  put_in_order(timers);
  EXPECT_EQ(timers, wanted);
}

TimerKey key(Timer timer, int node) {
  return {timer, "node-" + std::to_string(1000 + node), "v1-abc"};
}

TEST(TimerOrderTest, NoneAndOne) {
  expect_in_order({});
  expect_in_order({key(Timer::verifying, 1)});
}

TEST(TimerOrderTest, KindsTakeTurnsAndTheWalkBeganInTheMiddle) {
  std::vector<TimerKey> timers;
  for (int i = 0; i < 50; ++i) {
    const int node = (i + 17) % 50;
    timers.push_back(key(Timer::verifying, node));
    timers.push_back(key(Timer::changing, node));
  }
  expect_in_order(timers);
}

TEST(TimerOrderTest, SeveralPlannersNameOneTimer) {
  std::vector<TimerKey> timers;
  for (int planner = 0; planner < 3; ++planner)
    for (int node = 0; node < 20; node += planner + 1) timers.push_back(key(Timer::changing, node));
  expect_in_order(timers);
}

TEST(TimerOrderTest, NoOrderAtAll) {
  std::mt19937 random(7);
  std::vector<TimerKey> timers;
  for (int i = 0; i < 300; ++i)
    timers.push_back(key(static_cast<Timer>(random() % 5), static_cast<int>(random() % 90)));
  expect_in_order(timers);
}

TEST(TimerOrderTest, OneNodeAfterTheOtherBackwards) {
  std::vector<TimerKey> timers;
  for (int node = 40; node > 0; --node) timers.push_back(key(Timer::shown, node));
  expect_in_order(timers);
}

}  // namespace
}  // namespace gso::timer_order_test
