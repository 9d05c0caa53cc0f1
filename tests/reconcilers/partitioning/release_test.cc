// Nodes that lose the label of nos get back what they had before the operator partitioned them.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tests/reconcilers/partitioning/slice_cluster.h"

namespace gso::testing::release_test {
namespace {

constexpr const char* kConfig = "nvidia.com/device-plugin.config";
constexpr const char* kPresent = "nos.nebuly.com/gpu-partitioning";
constexpr const char* kFormer = "nos.nebuly.ai/gpu-partitioning";
constexpr const char* kMark = "gpusharing.dev/partitioning";

Json& labels_of(SliceCluster& cluster, const std::string& node) {
  return cluster.object("Node", node)["metadata"]["labels"];
}

std::optional<PatchNode> patch_in(const Plan& plan, const std::string& node) {
  for (const PlannedAction& planned : plan.actions) {
    const auto* patch = std::get_if<PatchNode>(&planned.action);
    if (patch != nullptr && patch->name == node) return *patch;
  }
  return std::nullopt;
}

// n1 has been partitioned for a pod; `before`: its profile label then, or empty.
SliceCluster partitioned(const std::string& before, bool former_name = false) {
  SliceCluster cluster;
  cluster.node("n1", 1, 40960);
  if (!before.empty()) labels_of(cluster, "n1")[kConfig] = before;
  if (former_name) {
    labels_of(cluster, "n1").erase(kPresent);
    labels_of(cluster, "n1")[kFormer] = "mps";
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
    EXPECT_FALSE(patch_in(cluster.plan(), "n1").has_value()) << "after " << pass * 30 << " s";
    cluster.wait(std::chrono::seconds(30));
  }
  return cluster.plan();
}

TEST(Release, ANodeThatLosesTheLabelGetsTheProfileLabelThatItHadBefore) {
  SliceCluster cluster = partitioned("team-profile");
  labels_of(cluster, "n1").erase(kPresent);
  const Plan plan = plan_after_two_minutes(cluster);
  const auto patch = patch_in(plan, "n1");
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
      cluster.object("Node", "n1")["metadata"]["annotations"][kMark] = text;
      if (!labelled) labels_of(cluster, "n1").erase(kPresent);
      cluster.pod("p2", {20});
      const Plan plan = cluster.plan();
      EXPECT_FALSE(patch_in(plan, "n1").has_value());
      const auto findings = findings_about(plan, "n1");
      ASSERT_EQ(findings.size(), 1U);
      EXPECT_NE(findings[0].find(kMark), std::string::npos);
    }
  }
}

TEST(Release, ANodeWithoutAProfileLabelBeforeHasNoneAfterwards) {
  SliceCluster cluster = partitioned("");
  labels_of(cluster, "n1").erase(kPresent);
  cluster.settle();
  EXPECT_EQ(cluster.label("n1"), "");
  EXPECT_FALSE(cluster.object("Node", "n1")["metadata"]["annotations"].contains(kMark));
}

// The official plugin would crash on a key that it does not find: nos #16.
TEST(Release, AKeyOfNosIsNotRestoredWhereNosIsGone) {
  SliceCluster cluster;
  cluster.node("n1", 1, 40960, {}, {{0, {{20, 1}}}});
  cluster.pod("p1", {30});
  EXPECT_EQ(cluster.settle(), 2);
  labels_of(cluster, "n1").erase(kPresent);
  const auto patch = patch_in(plan_after_two_minutes(cluster), "n1");
  ASSERT_TRUE(patch.has_value());
  EXPECT_TRUE(patch->set.empty());
  EXPECT_TRUE(patch->remove.contains(kConfig));
}

TEST(Release, AProfileLabelThatAnotherClientHasMovedSinceStays) {
  SliceCluster cluster = partitioned("team-profile");
  labels_of(cluster, "n1").erase(kPresent);
  labels_of(cluster, "n1")[kConfig] = "another";
  const auto patch = patch_in(plan_after_two_minutes(cluster), "n1");
  ASSERT_TRUE(patch.has_value());
  EXPECT_TRUE(patch->set.empty() && patch->remove.empty());
  EXPECT_EQ(patch->remove_annotations, std::set<std::string>{kMark});
}

TEST(Release, TheLabelThatTheOperatorSetBesideTheFormerOneGoesOnceNoPodUsesSlices) {
  SliceCluster cluster = partitioned("", true);
  ASSERT_EQ(labels_of(cluster, "n1")[kPresent], "mps");
  cluster.pod("user", {10}, {.node = "n1"});
  labels_of(cluster, "n1").erase(kFormer);
  Plan plan = cluster.plan();
  EXPECT_FALSE(patch_in(plan, "n1").has_value()) << "a pod uses a slice";
  EXPECT_EQ(findings_about(plan, "n1").size(), 1U);
  cluster.remove("Pod", "user");
  plan = cluster.plan();
  const auto patch = patch_in(plan, "n1");
  ASSERT_TRUE(patch.has_value());
  EXPECT_EQ(patch->remove, (std::set<std::string>{kConfig, kPresent}));
  cluster.settle();
  EXPECT_FALSE(labels_of(cluster, "n1").contains(kPresent));
}

TEST(Release, ANodeWhoseOwnerHasRemovedTheFormerLabelIsNotPlannedFor) {
  SliceCluster cluster = partitioned("", true);
  cluster.pod("user", {10}, {.node = "n1"});
  labels_of(cluster, "n1").erase(kFormer);
  cluster.pod("waits", {20});
  cluster.settle();
  EXPECT_EQ(cluster.free("n1"), (Slices{{0, {{10, 1}}}}));
}

TEST(Release, UnderObserveAndOffTheNodeKeepsWhatItHas) {
  for (const PartitioningMode mode : {PartitioningMode::observe, PartitioningMode::off}) {
    SliceCluster cluster = partitioned("team-profile");
    labels_of(cluster, "n1").erase(kPresent);
    cluster.mode = mode;
    const Plan plan = plan_after_two_minutes(cluster);
    EXPECT_TRUE(writes_of(plan).empty());
    EXPECT_TRUE(events_about(plan, "n1").empty());
    EXPECT_EQ(findings_about(plan, "n1").size(), mode == PartitioningMode::observe ? 1U : 0U);
  }
}

// Its key is then needed by nobody.
TEST(Release, TheKeyOfAReleasedNodeIsCollectedWithTheOthers) {
  SliceCluster cluster = partitioned("");
  ASSERT_EQ(cluster.keys().size(), 1U);
  labels_of(cluster, "n1").erase(kPresent);
  cluster.settle();
  for (int pass = 0; pass < 20; ++pass) {
    cluster.apply(cluster.plan());
    cluster.wait(std::chrono::minutes(5));
  }
  EXPECT_TRUE(cluster.keys().empty());
}

}  // namespace
}  // namespace gso::testing::release_test
