// Rollouts that combine conditions (Combination), with the invariants asserted at every step. By default any three
// dimensions in each combination of their values, and any four as yes and no; GSO_COMBINATIONS=full plays all 8,192 of
// yes and no (hours). A rollout is also killed once after each of its writes in turn: by default one change of MPS,
// otherwise every change. GSO_COMBINATION=17 plays one, GSO_SHOW_STORY=1 prints what is planned, GSO_KEEP_GOING=1
// continues after a failure.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "reconcilers/cluster/record.h"
#include "tests/reconcilers/combinations/combinations.h"

namespace gso::test::combinations_test {
namespace {

constexpr int kShards = 16;

Extent extent() {
  const char* wanted = std::getenv("GSO_COMBINATIONS");
  return wanted != nullptr && wanted == std::string_view("full") ? Extent::yes_and_no : Extent::triples;
}

class RolloutCombinations : public testing::TestWithParam<int> {};

TEST_P(RolloutCombinations, KeepTheInvariantsAtEveryStep) {
  static const std::vector<Combination> list = all_combinations(extent());
  const char* only = std::getenv("GSO_COMBINATION");
  for (std::size_t i = static_cast<std::size_t>(GetParam()); i < list.size(); i += kShards) {
    if (only != nullptr && i != static_cast<std::size_t>(std::atoll(only))) continue;
    const Combination& combination = list[i];
    SCOPED_TRACE(fmt::format("combination {}: {}", i, combination.name()));
    const RolloutTrace trace = play(combination);
    EXPECT_GT(trace.starts, 0) << "nothing was rolled";
    EXPECT_EQ(trace.kills > 0, combination.killed_every > 0);
    if (HasFailure() && std::getenv("GSO_KEEP_GOING") == nullptr) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, RolloutCombinations, testing::Range(0, kShards));

// One rollout again and again: killed once, after its first write, after its second, and so on to its last.
class KilledOnce : public testing::TestWithParam<std::size_t> {};

TEST_P(KilledOnce, AfterEachWriteInTurn) {
  Combination combination;
  combination.change = all_changes()[GetParam()];
  combination.canary = true;
  const std::int64_t writes = play(combination).writes;
  ASSERT_GT(writes, 20);
  combination.killed_every = std::numeric_limits<int>::max();
  for (int k = 1; k <= writes; ++k) {
    combination.killed_from = k;
    SCOPED_TRACE(combination.name());
    EXPECT_EQ(play(combination).kills, 1);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Changes, KilledOnce,
                         testing::Range<std::size_t>(0, extent() == Extent::triples ? 1 : all_changes().size()));

// S12: nodes that were out of service before the edit are no canaries, and their failure stops no other node. play()
// asserts that all others arrive.
class OutOfServiceBefore : public testing::TestWithParam<std::size_t> {};

TEST_P(OutOfServiceBefore, NodesHoldUpNobody) {
  for (const auto& [broken, cordoned] : {std::pair{true, false}, {false, true}, {true, true}}) {
    Combination combination;
    combination.change = all_changes()[GetParam()];
    combination.canary = true;
    combination.percent = GetParam() % 2 == 1;
    combination.broken_before = broken;
    combination.cordoned_before = cordoned;
    SCOPED_TRACE(combination.name());
    EXPECT_GT(play(combination).starts, 0);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Changes, OutOfServiceBefore, testing::Range<std::size_t>(0, all_changes().size()));

// They take minutes; a list that grows unnoticed makes every test run longer.
TEST(Combinations, AreNoMoreThanATestRunHasTimeFor) {
  EXPECT_LE(all_combinations(Extent::triples).size(), 180U);
  EXPECT_LE(all_combinations(Extent::on_server).size(), 45U);
}

}  // namespace
}  // namespace gso::test::combinations_test
