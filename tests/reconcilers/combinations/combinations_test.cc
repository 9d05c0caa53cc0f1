// Combinations of {strategy change, canary, percent budgets, failures at each step, operator killed at each write,
// NotReady nodes, PDB refusing, window closing mid-way, superseding edit, 40 nodes with old drift at install, KAI},
// with the invariants asserted at every step. By default any four of them in each of their 16 ways;
// GSO_COMBINATIONS=full plays all 2,048 (minutes), =all every value of every dimension (hours). A rollout is also
// killed once after each of its writes in turn: by default one change of MPS, otherwise every change.
// GSO_COMBINATION=17 plays one, GSO_SHOW_STORY=1 prints what is planned, GSO_KEEP_GOING=1 goes on after a failure.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <limits>
#include <set>
#include <string_view>
#include <vector>

#include "tests/reconcilers/combinations/combinations.h"

namespace gso::test {
namespace {

constexpr int kShards = 16;

Extent extent() {
  const char* wanted = std::getenv("GSO_COMBINATIONS");
  const std::string_view text = wanted == nullptr ? "" : wanted;
  return text == "all" ? Extent::every_value : text == "full" ? Extent::yes_and_no : Extent::covering;
}

const std::vector<Combination>& combinations() {
  static const std::vector<Combination> list = all_combinations(extent());
  return list;
}

class RolloutCombinations : public testing::TestWithParam<int> {};

TEST_P(RolloutCombinations, KeepTheInvariantsAtEveryStep) {
  const char* only = std::getenv("GSO_COMBINATION");
  for (std::size_t i = static_cast<std::size_t>(GetParam()); i < combinations().size(); i += kShards) {
    if (only != nullptr && i != static_cast<std::size_t>(std::atoll(only))) continue;
    const Combination& combination = combinations()[i];
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
                         testing::Range<std::size_t>(0, extent() == Extent::covering ? 1 : all_changes().size()));

unsigned flags_of(const Combination& c) {
  const bool disruptive = std::string_view(c.change.from) != "ts-8" && std::string_view(c.change.to) != "ts-8" &&
                          std::string_view(c.change.to) != "mps-4-many";
  const bool flags[] = {disruptive,
                        c.canary,
                        c.percent,
                        c.fault != Fault::none,
                        c.killed_every > 0,
                        c.not_ready,
                        c.pdb_refuses,
                        c.window_closes,
                        c.superseding != Superseding::none,
                        c.old_drift,
                        c.kai};
  unsigned row = 0;
  // Not `flags[i] ? 1U : 0U`: g++ 12 with -O1 and UndefinedBehaviorSanitizer reads flags[0] each time.
  for (unsigned i = 0; i < std::size(flags); ++i) row |= static_cast<unsigned>(flags[i]) << i;
  return row;
}

// Any `strength` dimensions meet in each of their ways.
void expect_covering(Extent extent, std::size_t size, int strength) {
  std::vector<unsigned> rows;
  for (const Combination& c : all_combinations(extent)) rows.push_back(flags_of(c));
  EXPECT_EQ(rows.size(), size);
  for (unsigned dimensions = 0; dimensions < 1U << 11U; ++dimensions) {
    if (std::popcount(dimensions) != strength) continue;
    std::set<unsigned> ways;
    for (const unsigned row : rows) ways.insert(row & dimensions);
    EXPECT_EQ(ways.size(), std::size_t{1} << static_cast<unsigned>(strength)) << dimensions;
  }
}

TEST(Combinations, AnyFourDimensionsMeetInEachOfTheirWays) {
  expect_covering(Extent::covering, 128, 4);
}
TEST(Combinations, AnyTwoDimensionsOfTheFewMeetInEachOfTheirWays) {
  expect_covering(Extent::pairs, 12, 2);
}

}  // namespace
}  // namespace gso::test
