// Rollouts on the simulated API server with the whole operator, the invariants judged on every write: killed once after
// some of their writes in turn, in twelve combinations in which any two of the ten dimensions meet, and with a leader
// that loses its lease. GSO_SIMULATED_ROLLOUTS=full kills after every write and plays the 128 combinations of the
// planner's tests (minutes); GSO_STORY_VERBOSE=1 says what happens.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <vector>

#include "tests/sim/story/combined_rollout.h"

namespace gso::sim {
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
  std::uint64_t writes = 0;
  std::uint64_t k = 1 + GetParam() * (is_full() ? 1 : kSpread);
  do {
    rollout.what.killed_from = static_cast<int>(k);
    SCOPED_TRACE(rollout.what.name());
    const CombinedTrace trace = play_on_server(rollout);
    EXPECT_EQ(trace.kills, 1U);
    writes = trace.writes;
    k += kShards;
  } while (is_full() && !HasFailure() && k <= writes);
  EXPECT_GT(writes, 20U);
}

INSTANTIATE_TEST_SUITE_P(SimulatedRollouts, KilledOnce, testing::Range<std::uint64_t>(0, kShards));

// --- Everything that comes together.

const std::vector<Combination>& combinations() {
  static const std::vector<Combination> list =
      test::all_combinations(is_full() ? test::Extent::covering : test::Extent::pairs);
  return list;
}

class Combined : public testing::TestWithParam<std::size_t> {};

TEST_P(Combined, TheyKeepTheInvariantsAndArrive) {
  const Combination& combination = combinations()[GetParam()];
  SCOPED_TRACE(combination.name());
  const CombinedTrace trace = play_on_server({.what = combination});
  EXPECT_GT(trace.deletions, 0U) << "nothing was rolled";
  EXPECT_EQ(trace.kills > 0, combination.killed_every > 0);
}

INSTANTIATE_TEST_SUITE_P(SimulatedRollouts, Combined, testing::Range<std::size_t>(0, combinations().size()));

// --- Two operators.

class Takeover : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Takeover, ALeaderThatLosesItsLeaseIsFollowedByAnotherThatRestartsNobodyAgain) {
  const CombinedTrace trace = play_on_server({.what = plain(), .lease_lost_after = GetParam()});
  EXPECT_EQ(trace.writers.size(), 2U);
}

INSTANTIATE_TEST_SUITE_P(SimulatedRollouts, Takeover,
                         testing::ValuesIn(is_full() ? std::vector<std::uint64_t>{2, 5, 9, 20, 40}
                                                     : std::vector<std::uint64_t>{2}));

}  // namespace
}  // namespace gso::sim
