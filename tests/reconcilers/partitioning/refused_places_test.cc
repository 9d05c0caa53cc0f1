// Pods that the scheduler does not bind although slices are free for them: CPUs, volumes or other pods are in the way,
// which partitioning does not see.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "slice_cluster.h"

namespace gso::testing::refused_places_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int k40 = 41'860;

// Passes a minute apart.
Plan pass_for(SliceCluster& cluster, std::chrono::minutes span) {
  return cluster.pass(static_cast<int>(span.count()), 1min);
}

int free_slices(const SliceCluster& cluster, const std::string& node, int size) {
  return total(cluster.free(node), size);
}

// Two pods of one StatefulSet must not share a node, and both have been planned on n1; the first one is bound.
void apart(SliceCluster& cluster, int nodes) {
  for (int n = 1; n <= nodes; ++n) cluster.node("n" + std::to_string(n), 1, k40);
  for (const char* pod : {"a", "b", "c"}) cluster.pod(pod, {10});
  pass_for(cluster, 6min);
  ASSERT_EQ(free_slices(cluster, "n1", 10), 3);
  cluster.bind("a", "n1");
}

TEST(RefusedPlaces, APodThatTheSchedulerDoesNotBindIsPlannedOnAnotherNode) {
  SliceCluster cluster;
  apart(cluster, 2);
  cluster.remove("Pod", "c");
  pass_for(cluster, 10min);
  EXPECT_EQ(free_slices(cluster, "n2", 10), 0) << "the scheduler can still bind it";
  Plan plan;
  for (int pass = 0; pass < 15 && free_slices(cluster, "n2", 10) == 0; ++pass) plan = pass_for(cluster, 1min);
  EXPECT_EQ(free_slices(cluster, "n2", 10), 1);
  EXPECT_THAT(events_about(plan, "b"),
              ElementsAre(HasSubstr("planned on node n2; the scheduler does not bind it to node n1")));
}

TEST(RefusedPlaces, AfterOneNodeHasRefusedItTheNextOneIsGivenUpSooner) {
  SliceCluster cluster;
  apart(cluster, 3);
  pass_for(cluster, 22min);
  ASSERT_EQ(free_slices(cluster, "n2", 10), 2);
  cluster.bind("b", "n2");
  pass_for(cluster, 8min);
  EXPECT_EQ(free_slices(cluster, "n3", 10), 1);
}

TEST(RefusedPlaces, TheEventOfAPodThatIsRefusedEverywhereSaysSo) {
  SliceCluster cluster;
  apart(cluster, 1);
  const Plan plan = pass_for(cluster, 20min);
  EXPECT_THAT(events_about(plan, "b"),
              ElementsAre("needs 10 GiB of GPU memory; the scheduler does not bind it to node n1, where slices were "
                          "free for it: kubectl describe pod says why"));
}

// The scheduler never binds the pod of higher priority, which asks for the whole GPU.
void greedy_and_modest(SliceCluster& cluster) {
  cluster.node("n1", 1, k40);
  cluster.pod("greedy", {39}, {.priority = 5});
  cluster.pod("modest", {20});
}

TEST(RefusedPlaces, SlicesThatNobodyCanHaveServeOtherPods) {
  SliceCluster cluster;
  greedy_and_modest(cluster);
  pass_for(cluster, 6min);
  ASSERT_EQ(free_slices(cluster, "n1", 39), 1);
  pass_for(cluster, 20min);
  EXPECT_EQ(free_slices(cluster, "n1", 20), 1);
  cluster.bind("modest", "n1");
  pass_for(cluster, 5min);
  cluster.remove("Pod", "modest");
  pass_for(cluster, 10min);
  EXPECT_EQ(free_slices(cluster, "n1", 39), 0) << "it is not tried again at once";
}

TEST(RefusedPlaces, ANodeIsTriedAgainAnHourLater) {
  SliceCluster cluster;
  greedy_and_modest(cluster);
  pass_for(cluster, 30min);
  ASSERT_EQ(free_slices(cluster, "n1", 20), 1);
  cluster.remove("Pod", "modest");
  pass_for(cluster, 70min);
  EXPECT_EQ(free_slices(cluster, "n1", 39), 1);
}

TEST(RefusedPlaces, ASliceThatOtherPodsHaveTakenIsNoRefusal) {
  SliceCluster cluster;
  cluster.node("n1", 1, k40);
  cluster.node("n2", 1, k40);
  cluster.pod("a", {39});
  pass_for(cluster, 6min);
  ASSERT_EQ(free_slices(cluster, "n1", 39), 1);
  cluster.pod("b", {39}, {.node = "n1"});  // It was quicker.
  pass_for(cluster, 10min);
  cluster.remove("Pod", "b");
  const Plan plan = pass_for(cluster, 10min);
  EXPECT_THAT(events_about(plan, "a"), ElementsAre(HasSubstr("planned on node")));
  EXPECT_THAT(events_about(plan, "a"), ElementsAre(::testing::Not(HasSubstr("the scheduler does not bind it"))));
}

}  // namespace
}  // namespace gso::testing::refused_places_test
