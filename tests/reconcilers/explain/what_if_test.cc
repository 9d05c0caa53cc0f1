// `rollout diff`: which nodes a text would restart, and which pods block them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reconcilers/explain/what_if.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/profile/profile.h"
#include "reconcilers/reasons/names.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test::what_if_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

class WhatIf : public testing::Test {
 protected:
  static FleetSpec spec() {
    FleetSpec out;
    out.profiles = {{"any", "ts-4"}, {"other", "ts-2"}};
    out.nodes = alike_nodes(2);
    return out;
  }
  WhatIf() {
    EXPECT_TRUE(fleet.settle());
    fleet.advance(std::chrono::seconds(5));
  }
  k8s::Result<void> give(const std::string& key, const std::string& profile, bool whole = false) {
    GivenText text;
    text.config_map = {"gpu-operator", "mps-config"};
    text.keys[key] = profile_text(profile);
    text.whole = whole;
    return apply_given(fleet.world, fleet.settings, text, fleet.now);
  }
  std::vector<NodeDifference> all() { return differences(fleet.world, fleet.settings, fleet.now); }
  std::vector<std::string> blocked_by_pods(NodeDifference difference) {
    NodeConsumers listed = fleet.consumers[difference.node];
    listed.listed_at = one_look(fleet.now);
    find_obstacles(difference, fleet.world, fleet.settings, listed);
    return difference.blocked_by_pods;
  }
  FleetModel fleet{spec()};
};

TEST_F(WhatIf, TheTextThatRunsChangesNothing) {
  EXPECT_THAT(all(), IsEmpty());
  ASSERT_TRUE(give("any", "ts-4"));
  EXPECT_THAT(all(), IsEmpty());
}

TEST_F(WhatIf, AKeyThatNobodyUsesChangesNothing) {
  ASSERT_TRUE(give("other", "ts-8"));
  EXPECT_THAT(all(), IsEmpty());
}

TEST_F(WhatIf, EnteringMpsRestartsEveryNodeAndWaitsForWhoUsesIt) {
  fleet.use("n01", "job", "nvidia.com/gpu", 1);
  ASSERT_TRUE(give("any", "mps-4"));
  const auto found = all();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].node, "n01");
  EXPECT_EQ(found[0].transition, Transition::enter_mps);
  EXPECT_THAT(found[0].restarts, ElementsAre(Component::plugin, Component::gfd));
  EXPECT_TRUE(found[0].cordons);
  EXPECT_THAT(blocked_by_pods(found[0]), ElementsAre("jobs/job"));
  EXPECT_THAT(blocked_by_pods(found[1]), IsEmpty());
}

TEST_F(WhatIf, ANodeThatSomebodyHoldsSaysSo) {
  fleet.annotate("n01", kHoldAnnotation, "true");
  ASSERT_TRUE(give("any", "mps-4"));
  const auto found = all();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].held, kHeld);
  EXPECT_EQ(found[1].held, "");
}

TEST_F(WhatIf, GrowingTimeSlicingIsLiveAndNobodyIsInTheWay) {
  fleet.use("n01", "job", "nvidia.com/gpu", 1);
  ASSERT_TRUE(give("any", "ts-8"));
  const auto found = all();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].drain, Drain::nothing);
  EXPECT_FALSE(found[0].cordons);
  EXPECT_THAT(blocked_by_pods(found[0]), IsEmpty());
}

TEST_F(WhatIf, ShrinkingIsInTheWayOfThoseWhoAskForMoreThanIsLeft) {
  fleet.use("n01", "large", "nvidia.com/gpu", 5);
  fleet.use("n02", "small", "nvidia.com/gpu", 4);
  ASSERT_TRUE(give("any", "ts-2"));  // Two GPUs: 4 are left of 8.
  const auto found = all();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].drain, Drain::fits);
  EXPECT_THAT(blocked_by_pods(found[0]), ElementsAre("jobs/large"));
  EXPECT_THAT(blocked_by_pods(found[1]), IsEmpty());
}

TEST_F(WhatIf, ANodeWhosePodsStillFitIsNotCordonedAsInARollout) {
  fleet.use("n01", "large", "nvidia.com/gpu", 5);
  fleet.use("n02", "small", "nvidia.com/gpu", 4);
  ASSERT_TRUE(give("any", "ts-2"));
  auto found = all();
  ASSERT_EQ(found.size(), 2U);
  for (NodeDifference& difference : found) {
    NodeConsumers listed = fleet.consumers[difference.node];
    listed.listed_at = one_look(fleet.now);
    find_obstacles(difference, fleet.world, fleet.settings, listed);
  }
  EXPECT_TRUE(found[0].cordons);
  EXPECT_FALSE(found[1].cordons);
}

// For whoever takes an edit back: a node that runs a part of it is restarted once more.
TEST_F(WhatIf, ANodeThatIsHalfWayIsRestartedOnceMoreForTheTextThatItHad) {
  const auto in_progress = [this] {
    auto found = all();
    std::erase_if(found, [](const NodeDifference& d) { return !d.in_progress; });
    return found;
  };
  fleet.settings.settle = Duration::zero();
  fleet.hold_pods("n01", true);
  fleet.hold_pods("n02", true);
  fleet.edit("any", "ts-8");
  for (int i = 0; i < 60 && in_progress().empty(); ++i) (void)fleet.tick();
  ASSERT_EQ(in_progress().size(), 1U);
  const std::string to = in_progress()[0].to;
  EXPECT_NE(in_progress()[0].from, to);
  for (int i = 0; i < 10; ++i) (void)fleet.tick();  // Its pods are replaced.
  EXPECT_THAT(in_progress()[0].restarts, IsEmpty());
  ASSERT_TRUE(give("any", "ts-4"));
  const auto back = all();
  ASSERT_EQ(back.size(), 1U) << "the other node runs that text";
  EXPECT_TRUE(back[0].in_progress);
  EXPECT_EQ(back[0].from, to);
  EXPECT_THAT(back[0].restarts, Contains(Component::plugin));
}

// Regression: FROM was the record's text, the same as TO, and nothing seemed to change on the node that failed.
TEST_F(WhatIf, ANodeWhoseChangeFailedRunsTheTextOfThatChange) {
  fleet.settings.settle = Duration::zero();
  fleet.crash_pods("n01", true);
  fleet.crash_pods("n02", true);
  fleet.edit("any", "ts-8");
  const auto has_failed = [this](const char* node) { return fleet.label_of(node, kStateLabel) == "Failed"; };
  for (int i = 0; i < 2000 && !has_failed("n01") && !has_failed("n02"); ++i) (void)fleet.tick();
  const std::string node = has_failed("n01") ? "n01" : "n02";
  ASSERT_TRUE(has_failed(node.c_str()));
  ASSERT_TRUE(give("any", "ts-4"));
  const auto back = all();
  ASSERT_EQ(back.size(), 1U) << "the other node runs that text";
  EXPECT_EQ(back[0].node, node);
  EXPECT_EQ(back[0].from, revision_of(parse_profile(profile_text("ts-8")).profile));
  EXPECT_EQ(back[0].to, revision_of(parse_profile(profile_text("ts-4")).profile));
}

// A node that waits for its pods has lost nothing yet: when the edit is taken back it is uncordoned, and not restarted.
TEST_F(WhatIf, ANodeThatOnlyWaitsLeavesItsChangeForTheTextThatItHas) {
  fleet.settings.settle = Duration::zero();
  fleet.use("n01", "train", "nvidia.com/gpu", 1);
  fleet.use("n02", "serve", "nvidia.com/gpu", 1);
  fleet.edit("any", "mps-8");
  const auto draining = [this] {
    auto found = all();
    std::erase_if(found, [](const NodeDifference& d) { return !d.in_progress; });
    return found;
  };
  for (int i = 0; i < 60 && draining().empty(); ++i) (void)fleet.tick();
  ASSERT_EQ(draining().size(), 1U);
  const std::string node = draining()[0].node;
  const auto before = fleet.world.nodes.find(node)->meta.annotations;
  ASSERT_TRUE(give("any", "ts-4"));
  const auto back = all();
  ASSERT_EQ(back.size(), 1U) << "the other node runs that text";
  EXPECT_EQ(back[0].node, node);
  EXPECT_TRUE(back[0].leaves);
  EXPECT_FALSE(back[0].in_progress);
  EXPECT_FALSE(back[0].cordons);
  EXPECT_THAT(back[0].restarts, IsEmpty());
  EXPECT_EQ(back[0].blocked.message, "");
  EXPECT_EQ(fleet.world.nodes.find(node)->meta.annotations, before) << "the world is as it was";
  // For a third text it is restarted like the others, and queued again for that.
  ASSERT_TRUE(give("any", "ts-2"));
  const auto third = all();
  ASSERT_EQ(third.size(), 2U);
  for (const NodeDifference& d : third) {
    EXPECT_FALSE(d.leaves || d.in_progress) << d.node;
    EXPECT_THAT(d.restarts, Contains(Component::plugin)) << d.node;
  }
}

TEST_F(WhatIf, ATextThatNoPluginTakesBlocksItsNodes) {
  ASSERT_TRUE(give("any", "broken"));
  const auto found = all();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].blocked.code, "ConfigInvalid");
  EXPECT_THAT(found[0].restarts, IsEmpty());
}

TEST_F(WhatIf, AWholeConfigMapWithoutTheDefaultKeyIsSaid) {
  ASSERT_TRUE(give("renamed", "ts-4", true));
  const auto found = all();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].blocked.code, "ConfigInvalid");
}

TEST_F(WhatIf, AConfigMapThatNobodyMountsIsRefusedByName) {
  GivenText text;
  text.config_map = {"gpu-operator", "elsewhere"};
  const auto applied = apply_given(fleet.world, fleet.settings, text, fleet.now);
  ASSERT_FALSE(applied);
  EXPECT_THAT(applied.error().message, testing::HasSubstr("they mount gpu-operator/mps-config"));
}

TEST(WhatIfWithoutARecord, PresentTextsCountAsWhatRuns) {
  FleetSpec spec;
  spec.profiles = {{"any", "ts-4"}};
  spec.nodes = alike_nodes(2);
  FleetModel fleet(spec);  // No operator has planned here.
  GivenText text;
  text.config_map = {"gpu-operator", "mps-config"};
  text.keys["any"] = profile_text("ts-8");
  ASSERT_TRUE(apply_given(fleet.world, fleet.settings, text, fleet.now));
  EXPECT_EQ(differences(fleet.world, fleet.settings, fleet.now).size(), 2U);
}

}  // namespace
}  // namespace gso::test::what_if_test
