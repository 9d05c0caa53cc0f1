// Rollouts on the simulated API server with the whole operator, the invariants judged on every write: in combinations
// in which any three dimensions meet in each of the ways that this fleet tells apart, and with watches that lag.
// GSO_SIMULATED_ROLLOUTS=full plays all combinations of the planners' tests; GSO_STORY_VERBOSE=1 says what happens.
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "reconcilers/cluster/record.h"
#include "tests/sim/story/combined_rollout.h"

namespace gso::sim::simulated_rollouts_test {
namespace {

using test::Combination;

// MPS 4 to MPS 8, a canary and budgets of one.
Combination plain() {
  Combination combination;
  combination.change = test::all_changes()[0];
  combination.canary = true;
  return combination;
}

const std::vector<Combination>& combinations() {
  const bool is_full = std::getenv("GSO_SIMULATED_ROLLOUTS") != nullptr;
  static const std::vector<Combination> list =
      test::all_combinations(is_full ? test::Extent::triples : test::Extent::on_server);
  return list;
}

class Combined : public testing::TestWithParam<std::size_t> {};

TEST_P(Combined, TheyKeepTheInvariantsAndArrive) {
  const Combination& combination = combinations()[GetParam()];
  SCOPED_TRACE(combination.name());
  const CombinedTrace trace = play_on_server({.what = combination});
  // An edit back may come before the first pod goes.
  const bool back = combination.superseding == test::Superseding::by_the_old_one;
  EXPECT_TRUE(trace.deletions > 0 || back) << "nothing was rolled";
  EXPECT_EQ(trace.kills > 0, combination.killed_every > 0);
}

INSTANTIATE_TEST_SUITE_P(SimulatedRollouts, Combined, testing::Range<std::size_t>(0, combinations().size()));

// A node that never verifies, half-way when the profile is edited back: what it got for that is newer than the edit,
// and there is nothing to replace again. Its pods come as quickly as the edit is seen, in the edit's own second.
TEST(EditedBack, ANodeThatWasHalfWayAndFailsIsRestartedOnce) {
  Combination combination;
  combination.change = test::all_changes()[2];
  combination.percent = true;
  combination.fault = test::Fault::sidecar_is_stuck;
  combination.fault_in_canary = true;
  combination.superseding = test::Superseding::by_the_old_one;
  for (const int killed_every : {0, 1}) {
    combination.killed_every = killed_every;
    combination.killed_from = 2;
    SCOPED_TRACE(combination.name());
    EXPECT_GT(play_on_server({.what = combination}).deletions, 0U);
  }
}

// A half-way node is never restarted into a profile with an error (S5): it waits until somebody has corrected it. Those
// that go into MPS or leave it are half-way for some seconds.
TEST(EditedIntoAnError, ANodeThatIsHalfWayWaits) {
  for (const std::size_t change : {0U, 4U}) {
    CombinedRollout rollout{.what = {}, .disturbed_after = std::chrono::seconds(4)};
    rollout.what.change = test::all_changes()[change];
    rollout.what.superseding = test::Superseding::by_a_broken_one;
    SCOPED_TRACE(rollout.what.name());
    EXPECT_GT(play_on_server(rollout).deletions, 0U);
  }
}

// Plays it within MPS, and with time-slicing, where one pass sends three slow writes to a node: nothing is done twice.
void expect_nothing_twice(CombinedRollout rollout) {
  for (const std::size_t change : {0U, 1U}) {
    rollout.what.change = test::all_changes()[change];
    SCOPED_TRACE(rollout.what.name());
    const CombinedTrace trace = play_on_server(rollout);
    EXPECT_GT(trace.deletions, 0U);
    EXPECT_EQ(trace.idle_writes, 0U) << trace.idle_write;
  }
}

// An operator that sees nodes and pods late, or policies and rollouts as well, waits until it has seen its own writes.
// The longer lag is beyond what it waits for, before it reads what it has written.
TEST(SlowWatches, ARolloutKeepsItsBudgetsAndWritesNothingTwice) {
  Combination in_percent = plain();
  in_percent.percent = true;
  for (const bool records_lag : {false, true})
    for (const std::chrono::seconds lag : {std::chrono::seconds(3), std::chrono::seconds(8)})
      expect_nothing_twice({.what = in_percent, .watch_lag = lag, .records_lag = records_lag});
}

// Each new view is as late: it shows objects as they were before what the operator has read live, or written, since.
TEST(SlowWatches, ThatStartOverTakeNothingBackThatWasReadLive) {
  Combination in_percent = plain();
  in_percent.percent = true;
  for (const bool records_lag : {false, true})
    expect_nothing_twice(
        {.what = in_percent, .watch_lag = std::chrono::seconds(8), .records_lag = records_lag, .relists = true});
}

// A load balancer's or an API server's GOAWAY is nothing that anybody need notice.
TEST(RefusedWrites, CostARolloutNothingTwice) {
  expect_nothing_twice({.what = plain(), .refused_writes = true});
}

}  // namespace
}  // namespace gso::sim::simulated_rollouts_test
