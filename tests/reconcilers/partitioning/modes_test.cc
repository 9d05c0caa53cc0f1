// How far node.partitioning goes: partitioning-mode and max-mode.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/model/policy.h"
#include "tests/reconcilers/partitioning/slice_cluster.h"

namespace gso::testing::modes_test {
namespace {

constexpr const char* kMap = "nos-device-plugin-configs";

// A node with one free GPU of 40 GB, and a pod that waits for 10 GB.
SliceCluster waiting_pod() {
  SliceCluster cluster;
  cluster.node("n1", 1, 40960);
  cluster.pod("p1", {10});
  return cluster;
}

bool has(const std::vector<std::string>& texts, std::string_view part) {
  return std::ranges::any_of(texts, [&](const std::string& text) { return text.contains(part); });
}

TEST(PartitioningModes, EnforceWritesKeyAndLabel) {
  SliceCluster cluster = waiting_pod();
  EXPECT_EQ(cluster.settle(), 2);
  EXPECT_EQ(cluster.free("n1"), (Slices{{0, {{10, 1}}}}));
}

TEST(PartitioningModes, ObserveWritesNothingAndSaysWhatItWouldChange) {
  SliceCluster cluster = waiting_pod();
  cluster.mode = PartitioningMode::observe;
  EXPECT_EQ(cluster.settle(), 0);
  const Plan plan = cluster.plan();
  EXPECT_TRUE(has(findings_about(plan, kMap), "It would change: node n1 gets 1 x 10 GiB (none before)"));
  EXPECT_TRUE(has(events_about(plan, "p1"), "planned on node n1; partitioning is only observed"));
}

// Its writes were once dropped without a word.
TEST(PartitioningModes, AnOperatorThatOnlyObservesRolloutsSaysWhatItWouldPartition) {
  SliceCluster cluster = waiting_pod();
  cluster.settings.rollouts = PolicyMode::observe;
  EXPECT_EQ(cluster.settle(), 0);
  EXPECT_TRUE(has(findings_about(cluster.plan(), kMap), "It would change: node n1 gets 1 x 10 GiB"));
}

TEST(PartitioningModes, ObserveMovesNoLabelBackAndSaysThatItWould) {
  SliceCluster cluster;
  cluster.node("n1", 1, 40960, {}, {{0, {{20, 1}}}});
  cluster.pod("p1", {10});
  Plan plan;
  for (int pass = 0; pass < 30 && cluster.touched().empty(); ++pass) {
    plan = cluster.plan();
    cluster.apply(plan, false);
    cluster.wait(std::chrono::seconds(30));
  }
  ASSERT_TRUE(cluster.touched().contains("n1"));
  (void)cluster.plan();  // The move is followed from its beginning on.
  cluster.mode = PartitioningMode::observe;
  for (int pass = 0; pass < 6; ++pass) {
    cluster.wait(std::chrono::minutes(5));
    plan = cluster.plan();
    EXPECT_TRUE(writes_of(plan).empty());
  }
  EXPECT_TRUE(has(findings_about(plan, "n1"), "It would change: node n1 did not show the slices of key gso-n1-"));
  EXPECT_TRUE(events_about(plan, "n1").empty()) << "an Event would report what has not been done";
}

TEST(PartitioningModes, OffWritesNothingAndSaysThatItIsOff) {
  SliceCluster cluster = waiting_pod();
  cluster.mode = PartitioningMode::off;
  EXPECT_EQ(cluster.settle(), 0);
  const Plan plan = cluster.plan();
  EXPECT_TRUE(has(findings_about(plan, "n1"), "partitioning is switched off"));
  EXPECT_TRUE(events_about(plan, "p1").empty());
}

}  // namespace
}  // namespace gso::testing::modes_test
