// A key that is written and not projected yet, while pods come and go: it is kept as long as it is of use.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "slice_cluster.h"

namespace gso::testing::pending_keys_test {
namespace {

using namespace std::chrono_literals;

// A pod every 20 seconds for five minutes. True if the node got slices.
bool is_served_under_a_stream_of_pods(SliceCluster& cluster) {
  cluster.node("n", 2, 81'559);
  for (int i = 0; i < 15; ++i) {
    cluster.pod("p" + std::to_string(i), {5});
    cluster.wait(20s);
    cluster.apply(cluster.plan());
    cluster.apply(cluster.plan());  // As soon as the stores show what was written.
  }
  return !cluster.label("n").empty();
}

TEST(PendingKeys, AStreamOfPodsDoesNotPutOffTheMoveOfTheLabel) {
  SliceCluster cluster;
  EXPECT_TRUE(is_served_under_a_stream_of_pods(cluster));
}

TEST(PendingKeys, APodOfAHigherPriorityThatNoNodeAdmitsPutsOffNothing) {
  SliceCluster cluster;
  cluster.pod("elsewhere", {10}, {.priority = 9, .spec = {{"nodeSelector", {{"zone", "b"}}}}});
  EXPECT_TRUE(is_served_under_a_stream_of_pods(cluster));
}

// Its key would serve a pod that comes later, and there is room for one of the two.
TEST(PendingKeys, AKeyGivesWayToAPodOfAHigherPriority) {
  for (const bool hopeless : {false, true}) {
    SliceCluster cluster;
    if (hopeless) cluster.pod("elsewhere", {10}, {.priority = 90, .spec = {{"nodeSelector", {{"zone", "b"}}}}});
    cluster.node("n", 1, 41'860);
    cluster.pod("low", {30});
    cluster.plan();
    cluster.wait(1min);
    cluster.apply(cluster.plan());
    ASSERT_EQ(cluster.keys().size(), 1U);
    cluster.pod("high", {39}, {.priority = 9});
    cluster.wait(1min);
    cluster.apply(cluster.plan());
    for (int pass = 0; pass < 6; ++pass) {
      cluster.wait(1min);
      cluster.apply(cluster.plan());
    }
    EXPECT_EQ(cluster.free("n"), (Slices{{0, {{39, 1}}}})) << hopeless;
  }
}

}  // namespace
}  // namespace gso::testing::pending_keys_test
