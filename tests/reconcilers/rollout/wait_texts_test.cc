// What the groups of a rollout wait for, as one text.
#include "reconcilers/rollout/standstill.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace gso::wait_texts_test {
namespace {

std::string joined(const std::vector<std::pair<std::string, std::string>>& groups) {
  std::vector<GroupWait> waits;
  for (const auto& [product, why] : groups) waits.push_back({product, {"RollingOut", why}});
  return joined_waits(waits);
}

// A group that waits for full budgets, which are said in these clauses.
GroupWait full_for(const char* product, const std::vector<std::string>& clauses) {
  return {product, {"BudgetExhausted", fmt::format("{}", fmt::join(clauses, "; "))}, clauses};
}

TEST(WaitTexts, BusyNodesAreSaidToWaitForThePodsOfThoseBefore) {
  EXPECT_EQ(busy_nodes_text({"a01"}, 1, "policy default", "maxUnavailable"),
            "pods use these nodes: they start when their own pods end, or those of a01; policy default lets 1 node "
            "wait for its pods at a time (half of maxUnavailable)");
  EXPECT_EQ(busy_nodes_text({"a01", "t01"}, 2, "the cluster", "--cluster-max-unavailable"),
            "pods use these nodes: they start when their own pods end, or those of one of a01, t01; the cluster lets 2 "
            "nodes wait for their pods at a time (half of --cluster-max-unavailable)");
}

TEST(WaitTexts, GroupsThatWaitForDifferentThingsAreListedByProduct) {
  EXPECT_EQ(joined({{"A100", "why"}, {"T4", "why"}}), "why");
  EXPECT_EQ(joined({{"A100", "why"}, {"", "because"}}), "group A100: why; group of unknown product: because");
  EXPECT_EQ(joined({{"A", "1"}, {"B", "2"}, {"C", "3"}, {"D", "4"}, {"E", "5"}, {"F", "6"}}),
            "group A: 1; group B: 2; group C: 3; group D: 4; group E: 5; and 1 more group");
}

TEST(WaitTexts, ABudgetThatIsFullForSeveralGroupsIsNamedOnce) {
  const std::string full = "no slot is free: a01, a02 hold 2 of 2 slots of the cluster (--cluster-max-unavailable)";
  const std::string kept = "out of service: a02 (NotReady)";
  const std::string of_a100 = "also full: group A100 (maxUnavailablePerGroup): a01 holds 1 of 1 slot";
  const std::string of_v100 = "also full: group V100 (maxUnavailablePerGroup): v01 holds 1 of 1 slot";
  const std::string other = "no slot is free: x01 holds 1 of 1 slot of policy default (maxUnavailable)";
  EXPECT_EQ(joined_waits({full_for("A100", {full, of_a100, kept}),
                          full_for("T4", {full, kept}),
                          full_for("V100", {full, of_v100, kept}),
                          full_for("X", {other}),
                          {"Y", {"RollingOut", "waits for the canary y01"}}}),
            "group A100: " + full + "; " + of_a100 + "; " + kept +
                "; group T4: no slot is free (see group A100); group V100: no slot is free (see group A100); " +
                of_v100 + "; group X: " + other + "; group Y: waits for the canary y01");
}

// People can write into a status, and earlier releases have written other fields there.
TEST(Facts, AreReadOfWhatHasTheirTypesAlone) {
  EXPECT_EQ(facts_in({{"holders", {"a01", 2}}, {"nodes", "a01"}, {"until", 3}, {"evictionRefused", "true"}}),
            Facts{.holders = {"a01"}});
  nlohmann::json number = 1;
  EXPECT_EQ(facts_in(number), Facts());
  erase_facts(number);
  EXPECT_EQ(number, 1);
}

}  // namespace
}  // namespace gso::wait_texts_test
