// Rollouts on the simulated API server with the whole operator, the invariants judged on every write: killed once after
// some of their writes in turn, in combinations in which any three dimensions meet in each of the ways that this fleet
// tells apart, with a leader that loses its lease, and with watches that lag. GSO_SIMULATED_ROLLOUTS=full kills after
// every write and plays all combinations of the planners' tests; GSO_STORY_VERBOSE=1 says what happens.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <vector>

#include "reconcilers/cluster/record.h"
#include "tests/sim/story/combined_rollout.h"

namespace gso::sim::simulated_rollouts_test {
namespace {

using test::Combination;

std::string_view wanted() {
  const char* text = std::getenv("GSO_SIMULATED_ROLLOUTS");
  return text == nullptr ? "" : text;
}
bool is_full() {
  return !wanted().empty();
}

// MPS 4 to MPS 8, a canary and budgets of one.
Combination plain() {
  Combination combination;
  combination.change = test::all_changes()[0];
  combination.canary = true;
  return combination;
}

// --- Killed once.

// By default as many plays as there are shards, spread over the rollout's writes; each costs a second.
constexpr std::uint64_t kShards = 6, kSpread = 8;

class KilledOnce : public testing::TestWithParam<std::uint64_t> {};

TEST_P(KilledOnce, ARolloutArrivesAfterEachOfItsWritesInTurn) {
  CombinedRollout rollout{.what = plain()};
  rollout.what.killed_every = std::numeric_limits<int>::max();
  for (std::uint64_t k = 1 + GetParam() * (is_full() ? 1 : kSpread);; k += kShards) {
    rollout.what.killed_from = static_cast<int>(k);
    SCOPED_TRACE(rollout.what.name());
    const CombinedTrace trace = play_on_server(rollout);
    // There are so many writes; how many it is after a kill depends on what was killed.
    if (is_full() && k > 50 && trace.kills == 0) return;
    EXPECT_EQ(trace.kills, 1U);
    if (!is_full() || HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(SimulatedRollouts, KilledOnce, testing::Range<std::uint64_t>(0, kShards));

// --- Everything that comes together.

const std::vector<Combination>& combinations() {
  static const std::vector<Combination> list =
      test::all_combinations(is_full() ? test::Extent::triples : test::Extent::on_server);
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

// An operator that sees nodes and pods late, or policies and rollouts as well, does nothing twice: it waits until it
// has seen its own writes. The longer lag is beyond what it waits for, before it reads what it has written.
TEST(SlowWatches, ARolloutKeepsItsBudgetsAndWritesNothingTwice) {
  for (const bool records_lag : {false, true}) {
    for (const std::size_t change : {0U, 1U}) {
      for (const std::chrono::seconds lag : {std::chrono::seconds(3), std::chrono::seconds(8)}) {
        CombinedRollout rollout{.what = plain(), .watch_lag = lag, .records_lag = records_lag};
        rollout.what.change = test::all_changes()[change];
        rollout.what.percent = true;
        SCOPED_TRACE(rollout.what.name());
        const CombinedTrace trace = play_on_server(rollout);
        EXPECT_GT(trace.deletions, 0U);
        EXPECT_EQ(trace.idle_writes, 0U) << trace.idle_write;
      }
    }
  }
}

// Each new view is as late: it shows objects as they were before what the operator has read live, or written, since.
TEST(SlowWatches, ThatStartOverTakeNothingBackThatWasReadLive) {
  for (const bool records_lag : {false, true}) {
    for (const std::size_t change : {0U, 1U}) {
      CombinedRollout rollout{
          .what = plain(), .watch_lag = std::chrono::seconds(8), .records_lag = records_lag, .relists = true};
      rollout.what.change = test::all_changes()[change];
      rollout.what.percent = true;
      SCOPED_TRACE(rollout.what.name());
      const CombinedTrace trace = play_on_server(rollout);
      EXPECT_GT(trace.deletions, 0U);
      EXPECT_EQ(trace.idle_writes, 0U) << trace.idle_write;
    }
  }
}

// A load balancer's or an API server's GOAWAY is nothing that anybody need notice.
TEST(RefusedWrites, CostARolloutNothingTwice) {
  for (const std::size_t change : {0U, 1U}) {
    CombinedRollout rollout{.what = plain(), .refused_writes = true};
    rollout.what.change = test::all_changes()[change];
    SCOPED_TRACE(rollout.what.name());
    const CombinedTrace trace = play_on_server(rollout);
    EXPECT_GT(trace.deletions, 0U);
    EXPECT_EQ(trace.idle_writes, 0U) << trace.idle_write;
  }
}

// --- Two operators.

class Takeover : public testing::TestWithParam<std::uint64_t> {};

// Within MPS, and time-slicing, where one pass sends three slow writes to a node.
TEST_P(Takeover, ALeaderThatLosesItsLeaseIsFollowedByAnotherThatRestartsNobodyAgain) {
  for (const std::size_t change : {0U, 1U}) {
    CombinedRollout rollout{.what = plain(), .lease_lost_after = GetParam()};
    rollout.what.change = test::all_changes()[change];
    SCOPED_TRACE(rollout.what.name());
    EXPECT_EQ(play_on_server(rollout).writers.size(), 2U);
  }
}

INSTANTIATE_TEST_SUITE_P(SimulatedRollouts, Takeover,
                         testing::ValuesIn(is_full() ? std::vector<std::uint64_t>{2, 5, 9, 20, 40}
                                                     : std::vector<std::uint64_t>{2}));

}  // namespace
}  // namespace gso::sim::simulated_rollouts_test
