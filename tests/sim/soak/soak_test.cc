// Fault plans and their shrinking; that a seed decides a run; and rollouts under faults, as many as a test run has time
// for. ./dev soak plays more of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/soak/soak.h"

namespace gso::sim::soak_test {
namespace {

using testing::ElementsAre;

FaultPlan numbered(int count) {
  FaultPlan plan;
  for (int i = 0; i < count; ++i)
    plan.push_back({.fault = Fault::conflict, .verb = "patch", .resource = "nodes", .skip = i});
  return plan;
}

bool has(const FaultPlan& plan, int skip) {
  return std::ranges::any_of(plan, [skip](const FaultRule& rule) { return rule.skip == skip; });
}

std::vector<int> skips(const FaultPlan& plan) {
  std::vector<int> all;
  for (const FaultRule& rule : plan) all.push_back(rule.skip);
  return all;
}

TEST(Shrinking, KeepsWhatTheFailureNeedsAndNothingElse) {
  const auto needs_two = [](const FaultPlan& plan) { return has(plan, 2) && has(plan, 7); };
  EXPECT_THAT(skips(shrink(numbered(9), needs_two)), ElementsAre(2, 7));
  const auto needs_one = [](const FaultPlan& plan) { return has(plan, 4); };
  EXPECT_THAT(skips(shrink(numbered(9), needs_one)), ElementsAre(4));
  const auto needs_all = [](const FaultPlan& plan) { return plan.size() == 5; };
  EXPECT_THAT(skips(shrink(numbered(5), needs_all)), ElementsAre(0, 1, 2, 3, 4));
}

std::vector<FaultPlace> places() {
  return {{"patch", "nodes", 4}, {"get", "pods", 3}, {"watch", "nodes", 2}, {"event", "pods", 9}};
}

TEST(Plans, AreDecidedByTheirSeedAndStayAtTheirPlaces) {
  std::set<std::string> different;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const FaultPlan plan = make_plan(seed, places());
    ASSERT_FALSE(plan.empty());
    std::string words;
    for (const FaultRule& rule : plan) {
      words += describe(rule) + "\n";
      const bool known = std::ranges::any_of(places(), [&](const FaultPlace& place) {
        const bool on_watch = rule.verb == "watch" && (place.verb == "event" || place.verb == "watch");
        return (on_watch || place.verb == rule.verb) && place.resource == rule.resource && rule.skip < place.count;
      });
      EXPECT_TRUE(known) << describe(rule);
    }
    std::string again;
    for (const FaultRule& rule : make_plan(seed, places())) again += describe(rule) + "\n";
    EXPECT_EQ(words, again);
    different.insert(words);
  }
  EXPECT_GT(different.size(), 190U);
}

TEST(Plans, OfEveryCrashHaveEachWriteThreeTimes) {
  const auto plans = every_crash({{"patch", "nodes", 2}, {"get", "pods", 5}, {"update", "leases", 9}});
  std::vector<std::string> words;
  for (const FaultPlan& plan : plans) words.push_back(describe(plan.at(0)));
  EXPECT_THAT(words, ElementsAre("patch of nodes #1: crash_unsent 5ms", "patch of nodes #1: crash_unanswered 5ms",
                                 "patch of nodes #1: crash_answered 5ms", "patch of nodes #2: crash_unsent 5ms",
                                 "patch of nodes #2: crash_unanswered 5ms", "patch of nodes #2: crash_answered 5ms"));
}

TEST(Replay, TheSamePlanGivesTheSameRun) {
  std::vector<std::uint64_t> traces;
  for (int i = 0; i < 2; ++i) {
    const SoakBench bench(world_of(1));
    ASSERT_EQ(bench.problem(), "");
    const FaultPlan plan = make_plan(1, bench.reference().places);
    traces.push_back(bench.play(plan).trace);
    traces.push_back(bench.play(plan).trace);
  }
  EXPECT_THAT(traces, testing::Each(traces.front()));
}

}  // namespace
}  // namespace gso::sim::soak_test
