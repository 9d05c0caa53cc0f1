// Orders that are the same on every cluster: of timers, and of a store's objects, which it keeps by their hashes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/model/timer.h"

namespace gso::order_test {
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

TEST(TimerOrderTest, HoweverPlannersHaveNamedThem) {
  std::vector<TimerKey> in_turns, repeated, backwards, random_keys;
  for (int i = 0; i < 50; ++i)  // Kinds take turns, and the walk began in the middle.
    for (const Timer timer : {Timer::verifying, Timer::changing}) in_turns.push_back(key(timer, (i + 17) % 50));
  for (int planner = 0; planner < 3; ++planner)
    for (int node = 0; node < 20; node += planner + 1) repeated.push_back(key(Timer::changing, node));
  for (int node = 40; node > 0; --node) backwards.push_back(key(Timer::shown, node));
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i)
    random_keys.push_back(key(static_cast<Timer>(random() % 5), static_cast<int>(random() % 90)));
  for (const auto& timers : {in_turns, repeated, backwards, random_keys}) expect_in_order(timers);
}

TEST(StoreOrder, IsThatOfTheKeysNamespaceFirst) {
  k8s::Store<Deployment> store;
  std::vector<std::string> expected;
  for (int i = 99; i >= 0; --i) {
    Deployment deployment;
    deployment.meta.ns = Interned(i % 2 == 0 ? "a" : "b");
    deployment.meta.name = fmt::format("d{:02}", i);
    expected.push_back(k8s::to_string(deployment.meta.key()));
    store.apply(std::move(deployment));
  }
  std::ranges::sort(expected);
  std::vector<std::string> actual;
  for (const Deployment* deployment : in_order(store)) actual.push_back(k8s::to_string(deployment->meta.key()));
  EXPECT_EQ(actual, expected);
}

}  // namespace
}  // namespace gso::order_test
