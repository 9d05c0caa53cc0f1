// Combinations of {strategy change, canary, percent budgets, failures at each step, operator killed at each write,
// NotReady nodes, PDB refusing, window closing mid-way, superseding edit, 40 nodes with old drift at install, KAI, a
// node that was broken before, a node that was cordoned before}, with the invariants asserted at every step. By default
// any three of them in each combination of their values, and any four as yes and no; GSO_COMBINATIONS=full plays all
// 8,192 of yes and no (hours), =all every value of every dimension (days). A rollout is also killed once after each of
// its writes in turn: by default one change of MPS, otherwise every change. GSO_COMBINATION=17 plays one,
// GSO_SHOW_STORY=1 prints what is planned, GSO_KEEP_GOING=1 continues after a failure.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <limits>
#include <set>
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
  const std::string_view text = wanted == nullptr ? "" : wanted;
  return text == "all" ? Extent::every_value : text == "full" ? Extent::yes_and_no : Extent::triples;
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

// The values of a combination as a row.
using Row = std::vector<int>;

bool is_disruptive(const Combination& c) {
  const std::string_view from = c.change.from, to = c.change.to;
  return from != "ts-8" && to != "ts-8" && to != "mps-4-many";
}

Row each_value_of(const Combination& c) {
  int change = 0;
  while (std::string_view(all_changes()[static_cast<std::size_t>(change)].from) != c.change.from ||
         std::string_view(all_changes()[static_cast<std::size_t>(change)].to) != c.change.to) {
    ++change;
  }
  return {change,         c.canary,    c.percent,       static_cast<int>(c.fault), c.fault_in_canary,
          c.killed_every, c.not_ready, c.pdb_refuses,   c.window_closes,           static_cast<int>(c.superseding),
          c.old_drift,    c.kai,       c.broken_before, c.cordoned_before};
}

// The classes that the simulated fleet distinguishes.
Row on_server_by_change(const Combination& c) {
  Row row = each_value_of(c);
  row[3] = c.fault == Fault::none ? 0 : c.fault == Fault::labels_stay_wrong ? 2 : 1;
  row[5] = c.killed_every > 0;
  return row;
}

Row on_server(const Combination& c) {
  Row row = on_server_by_change(c);
  row[0] = is_disruptive(c);
  return row;
}

Row yes_and_no(const Combination& c) {
  Row row = each_value_of(c);
  row[0] = is_disruptive(c);
  row[3] = c.fault != Fault::none;
  row[4] = 0;  // The place of a fault is irrelevant without a fault.
  row[5] = c.killed_every > 0;
  row[9] = c.superseding != Superseding::none;
  return row;
}

// That number of dimensions, any of them, meet in each combination of their values: `values` has the number of values
// of each.
void expect_covering(Extent extent, Row (*row_of)(const Combination&), const std::vector<int>& values, int strength) {
  std::vector<Row> rows;
  for (const Combination& c : all_combinations(extent)) rows.push_back(row_of(c));
  for (unsigned dimensions = 0; dimensions < 1U << values.size(); ++dimensions) {
    if (std::popcount(dimensions) != strength) continue;
    std::size_t ways = 1;
    for (std::size_t d = 0; d < values.size(); ++d)
      ways *= (dimensions >> d & 1U) != 0 ? static_cast<std::size_t>(values[d]) : 1U;
    std::set<Row> seen;
    for (const Row& row : rows) {
      Row met;
      for (std::size_t d = 0; d < values.size(); ++d)
        if ((dimensions >> d & 1U) != 0) met.push_back(row[d]);
      seen.insert(std::move(met));
    }
    EXPECT_EQ(seen.size(), ways) << "the dimensions of " << dimensions;
  }
}

TEST(Combinations, AnyThreeDimensionsMeetInEachCombinationOfTheirValues) {
  expect_covering(Extent::triples, each_value_of, {6, 2, 2, 6, 2, 4, 2, 2, 2, 4, 2, 2, 2, 2}, 3);
}
TEST(Combinations, AnyFourDimensionsMeetAsYesAndNo) {
  expect_covering(Extent::triples, yes_and_no, {2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2}, 4);
}
TEST(Combinations, AnyThreeDimensionsMeetOnTheServerInWhatItsFleetDistinguishes) {
  expect_covering(Extent::on_server, on_server, {2, 2, 2, 3, 2, 2, 2, 2, 2, 4, 2, 2, 2, 2}, 3);
}
TEST(Combinations, EachChangeMeetsEverythingOnTheServer) {
  expect_covering(Extent::on_server, on_server_by_change, {6, 2, 2, 3, 2, 2, 2, 2, 2, 4, 2, 2, 2, 2}, 2);
}
// They take minutes; a list that grows unnoticed makes every test run longer.
TEST(Combinations, AreNoMoreThanATestRunHasTimeFor) {
  EXPECT_LE(all_combinations(Extent::triples).size(), 180U);
  EXPECT_LE(all_combinations(Extent::on_server).size(), 45U);
}
TEST(Combinations, AreTheSameEachTime) {
  const std::vector<Combination> once = all_combinations(Extent::on_server),
                                 again = all_combinations(Extent::on_server);
  ASSERT_EQ(once.size(), again.size());
  for (std::size_t i = 0; i < once.size(); ++i) EXPECT_EQ(once[i].name(), again[i].name());
}
TEST(Combinations, TheProductHasEveryWayOfYesAndNoOnce) {
  std::set<Row> seen;
  for (const Combination& c : all_combinations(Extent::yes_and_no)) EXPECT_TRUE(seen.insert(yes_and_no(c)).second);
  EXPECT_EQ(seen.size(), 8192U);
}

}  // namespace
}  // namespace gso::test::combinations_test
