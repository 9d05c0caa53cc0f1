// Nodes that lose the label of nos get back what they had before the operator partitioned them.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tests/reconcilers/partitioning/slice_cluster.h"

namespace gso::testing::release_test {
namespace {

std::optional<PatchNode> patch_in(const Plan& plan) {
  const std::vector<PatchNode> patches = patches_in(plan);
  EXPECT_LE(patches.size(), 1U);
  return patches.empty() ? std::nullopt : std::optional(patches[0]);
}

// n1 has been partitioned for a pod; `before`: its profile label then, or empty.
SliceCluster partitioned(const std::string& before, bool former_name = false) {
  SliceCluster cluster;
  cluster.node("n1", 1, 40960);
  if (!before.empty()) cluster.labels("n1")[kConfig] = before;
  if (former_name) {
    cluster.labels("n1").erase(kPresent);
    cluster.labels("n1")[kFormer] = "mps";
  }
  cluster.pod("p1", {10});
  EXPECT_EQ(cluster.settle(), 2);
  EXPECT_TRUE(cluster.label("n1").starts_with("gso-n1-"));
  cluster.remove("Pod", "p1");
  return cluster;
}

// A label that is away for a moment takes nothing.
Plan plan_after_two_minutes(SliceCluster& cluster) {
  for (int pass = 0; pass < 4; ++pass) {
    EXPECT_FALSE(patch_in(cluster.plan()).has_value()) << "after " << pass * 30 << " s";
    cluster.wait(std::chrono::seconds(30));
  }
  return cluster.plan();
}

TEST(Release, ANodeThatLosesTheLabelGetsTheProfileLabelThatItHadBefore) {
  SliceCluster cluster = partitioned("team-profile");
  cluster.labels("n1").erase(kPresent);
  const Plan plan = plan_after_two_minutes(cluster);
  const auto patch = patch_in(plan);
  ASSERT_TRUE(patch.has_value());
  EXPECT_EQ(patch->set, (std::map<std::string, std::string>{{kConfig, "team-profile"}}));
  EXPECT_TRUE(patch->remove.empty());
  EXPECT_EQ(patch->remove_annotations, std::set<std::string>{kMark});
  EXPECT_TRUE(patch->resource_version.has_value());
  const std::vector<std::string> events = events_about(plan, "n1");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_TRUE(events[0].contains("nvidia-smi -c DEFAULT")) << "the operator cannot set the compute mode: " << events[0];
}

// What stood there before the operator is known from the annotation alone.
TEST(Release, ANodeWhoseAnnotationCannotBeReadIsLeftAloneAndNamed) {
  const char* texts[] = {"{", "[]", R"({"v":2,"key":"x","moved":"2026-06-01T12:00:00Z"})",
                         R"({"v":1,"key":"x","moved":"soon"})", R"({"v":1,"key":7,"moved":"2026-06-01T12:00:00Z"})"};
  for (const char* text : texts) {
    for (const bool labelled : {true, false}) {
      SCOPED_TRACE(std::string(text) + (labelled ? ", labelled" : ", the label is gone"));
      SliceCluster cluster = partitioned("team-profile");
      cluster.annotations("n1")[kMark] = text;
      if (!labelled) cluster.labels("n1").erase(kPresent);
      cluster.pod("p2", {20});
      const Plan plan = cluster.plan();
      EXPECT_FALSE(patch_in(plan).has_value());
      const auto findings = findings_about(plan, "n1");
      ASSERT_EQ(findings.size(), 1U);
      EXPECT_NE(findings[0].find(kMark), std::string::npos);
    }
  }
}

TEST(Release, ANodeWithoutAProfileLabelBeforeHasNoneAfterwardsAndItsKeyIsCollected) {
  SliceCluster cluster = partitioned("");
  ASSERT_EQ(cluster.keys().size(), 1U);
  cluster.labels("n1").erase(kPresent);
  cluster.settle();
  EXPECT_EQ(cluster.label("n1"), "");
  EXPECT_FALSE(cluster.annotations("n1").contains(kMark));
  cluster.pass(20, std::chrono::minutes(5));
  EXPECT_TRUE(cluster.keys().empty());
}

// The official plugin would crash on a key that it does not find: nos #16.
TEST(Release, AKeyOfNosIsNotRestoredWhereNosIsGone) {
  SliceCluster cluster;
  cluster.node("n1", 1, 40960, {}, {{0, {{20, 1}}}});
  cluster.pod("p1", {30});
  EXPECT_EQ(cluster.settle(), 2);
  cluster.labels("n1").erase(kPresent);
  const auto patch = patch_in(plan_after_two_minutes(cluster));
  ASSERT_TRUE(patch.has_value());
  EXPECT_TRUE(patch->set.empty());
  EXPECT_TRUE(patch->remove.contains(kConfig));
}

TEST(Release, AProfileLabelThatAnotherClientHasMovedSinceStays) {
  SliceCluster cluster = partitioned("team-profile");
  cluster.labels("n1").erase(kPresent);
  cluster.labels("n1")[kConfig] = "another";
  const auto patch = patch_in(plan_after_two_minutes(cluster));
  ASSERT_TRUE(patch.has_value());
  EXPECT_TRUE(patch->set.empty() && patch->remove.empty());
  EXPECT_EQ(patch->remove_annotations, std::set<std::string>{kMark});
}

TEST(Release, TheLabelThatTheOperatorSetBesideTheFormerOneGoesOnceNoPodUsesSlices) {
  SliceCluster cluster = partitioned("", true);
  ASSERT_EQ(cluster.labels("n1")[kPresent], "mps");
  cluster.pod("user", {10}, {.node = "n1"});
  cluster.labels("n1").erase(kFormer);
  Plan plan = cluster.plan();
  EXPECT_FALSE(patch_in(plan).has_value()) << "a pod uses a slice";
  EXPECT_EQ(findings_about(plan, "n1").size(), 1U);
  cluster.remove("Pod", "user");
  plan = cluster.plan();
  const auto patch = patch_in(plan);
  ASSERT_TRUE(patch.has_value());
  EXPECT_EQ(patch->remove, (std::set<std::string>{kConfig, kPresent}));
  cluster.settle();
  EXPECT_FALSE(cluster.labels("n1").contains(kPresent));
}

TEST(Release, ANodeWhoseOwnerHasRemovedTheFormerLabelIsNotPlannedFor) {
  SliceCluster cluster = partitioned("", true);
  cluster.pod("user", {10}, {.node = "n1"});
  cluster.labels("n1").erase(kFormer);
  cluster.pod("waits", {20});
  cluster.settle();
  EXPECT_EQ(cluster.free("n1"), (Slices{{0, {{10, 1}}}}));
}

TEST(Release, UnderObserveAndOffTheNodeKeepsWhatItHas) {
  for (const PartitioningMode mode : {PartitioningMode::observe, PartitioningMode::off}) {
    SliceCluster cluster = partitioned("team-profile");
    cluster.labels("n1").erase(kPresent);
    cluster.mode = mode;
    const Plan plan = plan_after_two_minutes(cluster);
    EXPECT_TRUE(writes_of(plan).empty());
    EXPECT_TRUE(events_about(plan, "n1").empty());
    EXPECT_EQ(findings_about(plan, "n1").size(), mode == PartitioningMode::observe ? 1U : 0U);
  }
}

}  // namespace
}  // namespace gso::testing::release_test
