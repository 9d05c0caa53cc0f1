// The model of nos's rule against what upstream's functions answered, run unmodified (nebuly-ai/nos at 12e0a72).
#include "nos_rule.h"

#include <gtest/gtest.h>

#include <vector>

namespace gso::testing::nos_rule_test {
namespace {

std::vector<NosSlices> free_of(const NosNode& node) {
  std::vector<NosSlices> out;
  for (const NosGpu& gpu : node) out.push_back(gpu.free);
  return out;
}

using Free = std::vector<NosSlices>;

TEST(NosRule, LosesGrowthOfASizeThatWasFree) {
  const auto planned = nos_plan({{{30, {{10, 1}}}}}, {{0, {{10, 2}}}, {0, {{10, 2}}}});
  EXPECT_EQ(free_of(planned[0]), Free({{{10, 1}}}));
}

TEST(NosRule, CutsTheSmallestSizeFirstAndStrandsTheRest) {
  const auto planned = nos_plan({{{40, {}}, {40, {}}}}, {{0, {{40, 1}}}, {0, {{40, 1}}}, {0, {{10, 1}}}});
  EXPECT_EQ(free_of(planned[0]), Free({{{10, 1}}, {{40, 1}}}));
}

TEST(NosRule, SubtractsAFreeSliceTwice) {
  const auto planned = nos_plan({{{30, {{10, 1}}}}}, {{0, {{10, 2}}}});
  EXPECT_EQ(free_of(planned[0]), Free({{{10, 1}}}));
}

// n2 has a slice of 12 GB in use beside the free one.
TEST(NosRule, PlansAgainForAPodThatIsPlaced) {
  const std::vector<NosNode> nodes{{{24, {}}}, {{0, {{12, 1}}}}, {{24, {}}}};
  const std::vector<NosPod> pods{{0, {{8, 1}}}, {0, {{8, 1}}}, {0, {{8, 1}}}, {0, {{6, 1}}}};
  const auto planned = nos_plan(nodes, pods);
  EXPECT_EQ(free_of(planned[0]), Free({{{6, 1}, {8, 2}}}));
  EXPECT_EQ(free_of(planned[1]), Free({{{8, 1}}}));
  EXPECT_EQ(free_of(planned[2]), Free({{{8, 1}}}));
  EXPECT_EQ(most_served(planned, pods), 4);
}

TEST(NosRule, DropsAllFreeSlicesForALargerOne) {
  const auto planned = nos_plan({{{0, {{10, 4}}}}}, {{0, {{20, 1}}}});
  EXPECT_EQ(free_of(planned[0]), Free({{{20, 1}}}));
}

}  // namespace
}  // namespace gso::testing::nos_rule_test
