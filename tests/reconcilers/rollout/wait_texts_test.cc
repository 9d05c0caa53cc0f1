// Whoever knows no more than a status reads what busy nodes wait for out of the text that the operator wrote there.
#include "reconcilers/rollout/standstill.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace gso::wait_texts_test {
namespace {

using Groups = std::vector<std::pair<std::string, std::string>>;

TEST(WaitTexts, WhatBusyNodesOfAGroupWaitForIsReadBackFromTheTextOfAllGroups) {
  const std::string one = busy_nodes_text({"a01"}, 1, "policy default", "maxUnavailable");
  EXPECT_EQ(one,
            "pods use these nodes: they start when their own pods end, or those of a01; policy default lets 1 node "
            "wait for its pods at a time (half of maxUnavailable)");
  const std::string two = busy_nodes_text({"a01", "t01"}, 2, "the cluster", "--cluster-max-unavailable");
  EXPECT_EQ(two,
            "pods use these nodes: they start when their own pods end, or those of one of a01, t01; the cluster lets 2 "
            "nodes wait for their pods at a time (half of --cluster-max-unavailable)");
  const struct {
    Groups groups;
    std::string product;
    std::string read;
  } rows[] = {
      {{{"A100", one}}, "A100", one},
      {{{"A100", one}, {"T4", one}}, "T4", one},  // One text for all groups.
      {{{"A100", one}, {"T4", "waits for the canary t01"}}, "A100", one},
      {{{"A100", one}, {"T4", "waits for the canary t01"}}, "T4", ""},
      {{{"A100", "waits for the canary a01"}, {"T4", two}}, "T4", two},
      {{{"A100", one}, {"T4", two}}, "A100", one},
      {{{"A100", one}, {"T4", two}}, "T4", two},
      {{{"A100", one}, {"T4", two}}, "4", ""},
      {{{"", one}, {"T4", two}}, "", one},
      {{{"A", two}, {"B", one}, {"C", two}, {"D", two}, {"E", one}, {"F", two}, {"G", two}}, "E", one},
      {{{"A", two}, {"B", one}, {"C", two}, {"D", two}, {"E", one}, {"F", two}, {"G", two}}, "F", ""},  // Not listed.
      {{{"A100", "no slot is free: a01 holds 1 of 1 slot of policy default (maxUnavailable)"}}, "A100", ""},
      {{}, "A100", ""},
  };
  for (const auto& row : rows) {
    const std::string said = joined_waits(row.groups);
    EXPECT_EQ(busy_nodes_text_in(said, row.product), row.read) << said;
  }
}

TEST(WaitTexts, GroupsThatWaitForDifferentThingsAreListedByProduct) {
  EXPECT_EQ(joined_waits({{"A100", "why"}, {"T4", "why"}}), "why");
  EXPECT_EQ(joined_waits({{"A100", "why"}, {"", "because"}}), "group A100: why; group of unknown product: because");
  EXPECT_EQ(joined_waits({{"A", "1"}, {"B", "2"}, {"C", "3"}, {"D", "4"}, {"E", "5"}, {"F", "6"}}),
            "group A: 1; group B: 2; group C: 3; group D: 4; group E: 5; and 1 more group");
}

TEST(WaitTexts, ABudgetThatIsFullForSeveralGroupsIsNamedOnce) {
  const std::string full = "no slot is free: a01, a02 hold 2 of 2 slots of the cluster (--cluster-max-unavailable)";
  const std::string kept = "; out of service: a02 (NotReady)";
  const std::string of_a100 = "; also full: group A100 (maxUnavailablePerGroup): a01 holds 1 of 1 slot";
  const std::string of_v100 = "; also full: group V100 (maxUnavailablePerGroup): v01 holds 1 of 1 slot";
  const std::string other = "no slot is free: x01 holds 1 of 1 slot of policy default (maxUnavailable)";
  EXPECT_EQ(joined_waits({{"A100", full + of_a100 + kept},
                          {"T4", full + kept},
                          {"V100", full + of_v100 + kept},
                          {"X", other},
                          {"Y", "waits for the canary y01"}}),
            "group A100: " + full + of_a100 + kept +
                "; group T4: no slot is free (see group A100); group V100: no slot is free (see group A100)" + of_v100 +
                "; group X: " + other + "; group Y: waits for the canary y01");
}

}  // namespace
}  // namespace gso::wait_texts_test
