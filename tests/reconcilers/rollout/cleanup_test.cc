// What `cleanup` removes, on fleets in every state of a change.
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/status/status.h"
#include "tests/reconcilers/rollout/rollout_fleet.h"

namespace gso::test::cleanup_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Cleanup leave(FleetModel& fleet, const NodesInUse& in_use = {}, const UnreadConfigMaps& unread = {}) {
  fleet.index.note_everything_changed();
  fleet.index.refresh(fleet.world, fleet.settings);
  Cleanup out = plan_cleanup(fleet.world, fleet.index, in_use, unread, fleet.now);
  for (const PlannedAction& action : out.actions) fleet.apply(action);
  return out;
}

std::vector<std::string> left_on_nodes(const FleetModel& fleet) {
  std::vector<std::string> out;
  for (const auto& [key, node] : fleet.world.nodes.all()) {
    if (node->unschedulable) out.push_back(key.name + " cordoned");
    for (const auto* map : {&node->meta.labels, &node->meta.annotations}) {
      for (const auto& entry : *map)
        if (entry.key.view().starts_with("gpusharing.dev/"))
          out.push_back(key.name + " " + std::string(entry.key.view()));
    }
  }
  std::ranges::sort(out);
  return out;
}

void move_into_a_rollout(FleetModel& fleet) {
  let_all_go_at_once(fleet);
  fleet.settings.settle = std::chrono::seconds(1);
  ASSERT_TRUE(fleet.settle());
  fleet.advance(std::chrono::seconds(5));
  fleet.edit("any", "mps-8");
  tick(fleet, 3);
}

TEST(PlannerCleanup, InMidRolloutNothingStaysCordonedAndNothingOfTheOperatorIsLeft) {
  FleetModel fleet(spec_of(4, "mps-4"));
  move_into_a_rollout(fleet);
  ASSERT_THAT(left_on_nodes(fleet), testing::Contains("n01 cordoned")) << "the rollout has not begun";
  const Cleanup done = leave(fleet);
  EXPECT_FALSE(done.actions.empty());
  EXPECT_THAT(left_on_nodes(fleet), IsEmpty());
  EXPECT_THAT(done.kept, IsEmpty());
  EXPECT_TRUE(leave(fleet).actions.empty()) << "a second time has nothing to do";
}

TEST(PlannerCleanup, TheLabelThatSaysWhereAStandaloneMpsDaemonIsGoes) {
  FleetModel fleet(spec_of(2, "mps-4"));
  const std::string owned =
      R"({"v":1,"labels":{"gpusharing.dev/mps-pipe-directory":{"before":null,"value":"run.nvidia-mps"}}})";
  for (const char* node : {"n01", "n02"}) fleet.annotate(node, std::string(kOwnedAnnotation), owned);
  fleet.label("n01", std::string(kMpsPipeDirectory), "run.nvidia-mps");
  fleet.label("n02", std::string(kMpsPipeDirectory), "tmp.nvidia-mps");  // Another client's by now.
  const Cleanup done = leave(fleet);
  EXPECT_THAT(left_on_nodes(fleet), ElementsAre("n02 gpusharing.dev/mps-pipe-directory"));
  EXPECT_THAT(done.kept, ElementsAre(HasSubstr("n02: label gpusharing.dev/mps-pipe-directory is left as it is")));
}

TEST(PlannerCleanup, ANodeThatSomebodyElseCordonedStaysSo) {
  FleetSpec spec = spec_of(2, "mps-4");
  spec.nodes[0].cordoned = true;
  FleetModel fleet(std::move(spec));
  move_into_a_rollout(fleet);
  (void)leave(fleet);
  EXPECT_THAT(left_on_nodes(fleet), ElementsAre("n01 cordoned"));
}

TEST(PlannerCleanup, ACordonThatAHoldOrADriverUpgradeReliesOnStaysAndIsNamed) {
  FleetModel fleet(spec_of(3, "mps-4"));
  move_into_a_rollout(fleet);
  fleet.annotate("n01", kHoldAnnotation, "true");
  fleet.label("n02", std::string(kDriverUpgradeState), "pod-restart-required");
  const Cleanup done = leave(fleet);
  EXPECT_THAT(left_on_nodes(fleet), ElementsAre("n01 cordoned", "n01 gpusharing.dev/hold", "n02 cordoned"));
  EXPECT_THAT(done.kept, ElementsAre(HasSubstr("n01 stays cordoned: annotation gpusharing.dev/hold is set"),
                                     HasSubstr("a driver upgrade is in progress on the node; uncordon the node once")));
}

TEST(PlannerCleanup, WhereWeAreTheLabellerOurLabelsGoAndTheMpsDaemonKeepsItsOwn) {
  FleetSpec spec = spec_of(1, "ts-2");
  spec.nodes[0].gfd = false;
  FleetModel fleet(std::move(spec));
  fleet.settings.label_mode = PlannerSettings::LabelMode::enforce;
  fleet.label("n01", std::string(kMpsCapable), std::nullopt);  // Then the operator writes it.
  ASSERT_TRUE(fleet.settle());
  fleet.advance(std::chrono::seconds(5));
  fleet.edit("any", "mps-4");
  ASSERT_TRUE(fleet.settle());
  ASSERT_EQ(fleet.label_of("n01", kGpuReplicas), "4");
  ASSERT_EQ(fleet.label_of("n01", kMpsCapable), "true");
  const Cleanup done = leave(fleet);
  EXPECT_EQ(fleet.label_of("n01", kGpuReplicas), "");
  EXPECT_EQ(fleet.label_of("n01", kMpsCapable), "true");
  EXPECT_THAT(done.kept, ElementsAre(HasSubstr("mps.capable is kept")));
}

TEST(PlannerCleanup, ALabelThatNfdOwnsNowOrAnotherClientHasChangedSinceStays) {
  FleetSpec spec = spec_of(2, "ts-2");
  spec.nodes[0].gfd = spec.nodes[1].gfd = false;
  FleetModel fleet(std::move(spec));
  ASSERT_TRUE(fleet.settle());
  for (const char* node : {"n01", "n02"}) ASSERT_EQ(fleet.label_of(node, kGpuReplicas), "2");
  fleet.annotate("n01", "nfd.node.kubernetes.io/feature-labels", "nvidia.com/gpu.replicas");
  fleet.label("n02", std::string(kGpuReplicas), "7");
  const Cleanup done = leave(fleet);
  EXPECT_EQ(fleet.label_of("n01", kGpuReplicas), "2");
  EXPECT_EQ(fleet.label_of("n02", kGpuReplicas), "7");
  for (const char* node : {"n01", "n02"}) EXPECT_EQ(fleet.label_of(node, kSharingStrategy), "");
  EXPECT_THAT(done.kept,
              testing::Contains(HasSubstr("another client has changed it since the operator wrote 2")).Times(1));
}

// Everything of each node that the operator writes: labels, annotations, and the cordon.
std::map<std::string, std::string> nodes_as_text(const FleetModel& fleet) {
  std::map<std::string, std::string> out;
  for (const auto& [key, node] : fleet.world.nodes.all()) {
    std::set<std::string> entries;
    for (const auto* map : {&node->meta.labels, &node->meta.annotations})
      for (const auto& entry : *map) entries.insert(fmt::format("{}={}", entry.key.view(), entry.value.view()));
    out[key.name] = fmt::format("{} {}", fmt::join(entries, "\n"), node->unschedulable);
  }
  return out;
}

TEST(PlannerCleanup, NodesEndAsTheyWereBeforeAPolicyThatReverts) {
  FleetSpec spec = spec_of(3, "ts-2");
  spec.nodes[0].labels = {{std::string(kConfigLabel), "any"}};
  spec.nodes[1].gfd = spec.nodes[2].gfd = false;
  spec.nodes[2].labels = {{std::string(kGpuReplicas), "7"}, {"team", "a"}};
  FleetModel fleet(std::move(spec));
  fleet.settings.projection = fleet.settings.settle = std::chrono::seconds(1);
  fleet.settings.label_mode = PlannerSettings::LabelMode::verify;  // Nothing is written before the policy.
  ASSERT_TRUE(fleet.settle());
  const auto before = nodes_as_text(fleet);
  fleet.settings.label_mode = PlannerSettings::LabelMode::automatic;
  free_cluster_budget(fleet);
  fleet.policy(policy_of(
      "deletionPolicy: Revert, takeover: true, profile: {inline: {strategy: time-slicing, replicas: 2}}, rollout: "
      "{canary: {soak: 1s}, maxUnavailable: 100%, maxUnavailablePerGroup: 100%}",
      "p"));
  fleet.restart_operator();
  ASSERT_TRUE(fleet.settle());
  ASSERT_NE(nodes_as_text(fleet), before);
  ASSERT_NE(fleet.label_of("n01", kConfigLabel), "any");
  (void)leave(fleet);
  EXPECT_EQ(nodes_as_text(fleet), before);
}

class LabelOfAPolicy : public testing::Test {
 protected:
  void apply(const std::string& deletion) {
    fleet.settings.projection = fleet.settings.settle = std::chrono::seconds(1);
    ASSERT_TRUE(fleet.settle());
    fleet.policy(policy_of("deletionPolicy: " + deletion +
                               ", profile: {inline: {strategy: time-slicing, replicas: 8}}, rollout: {canary: {soak: "
                               "1s}, maxUnavailable: 100%, maxUnavailablePerGroup: 100%}",
                           "p"));
    free_cluster_budget(fleet);
    ASSERT_TRUE(fleet.settle());
    ASSERT_NE(fleet.label_of("n01", kConfigLabel), "");
    label = fleet.label_of("n01", kConfigLabel);
  }
  FleetModel fleet{spec_of(2, "ts-2")};
  std::string label;
};

TEST_F(LabelOfAPolicy, StaysWithRetain) {
  apply("Retain");
  const Cleanup done = leave(fleet);
  EXPECT_EQ(fleet.label_of("n01", kConfigLabel), label);
  EXPECT_THAT(left_on_nodes(fleet), IsEmpty());
  EXPECT_THAT(done.kept, ElementsAre(AllOf(HasSubstr("=" + label + " of policy p is kept on 2 nodes: n01, n02, and so"),
                                           HasSubstr("key " + label + " of ConfigMap gpu-operator/"),
                                           testing::Not(HasSubstr("kubectl get nodes --selector")))))
      << "the selector would list nodes that people labelled, too";
}

TEST_F(LabelOfAPolicy, StaysWithRetainAndItsKeyIsNamedWhereTheConfigMapCannotBeRead) {
  apply("Retain");
  fleet.index.refresh(fleet.world, fleet.settings);
  const std::set<ObjectKey> needed = config_maps_of_retained_keys(fleet.world, fleet.index);
  EXPECT_THAT(needed, ElementsAre(ObjectKey{"gpu-operator", "mps-config"}));
  const Cleanup done = leave(fleet, {}, {{*needed.begin(), "configmaps are forbidden"}});
  EXPECT_THAT(done.kept, ElementsAre(HasSubstr("and so does key " + label +
                                               " of ConfigMap gpu-operator/mps-config (not checked: configmaps are "
                                               "forbidden)")));
}

TEST_F(LabelOfAPolicy, GoesBackWithRevertWhereNobodyUsesTheGpus) {
  apply("Revert");
  ASSERT_THAT(fleet.world.policies.find("p")->finalizers, ElementsAre(kRevertFinalizer));
  fleet.index.refresh(fleet.world, fleet.settings);
  EXPECT_THAT(config_maps_of_retained_keys(fleet.world, fleet.index), IsEmpty());
  EXPECT_THAT(nodes_to_revert(fleet.world, fleet.index), ElementsAre("n01", "n02"));
  const Cleanup done = leave(fleet, {.used = {"n02"}, .unknown = {}});
  EXPECT_EQ(fleet.label_of("n01", kConfigLabel), "");
  EXPECT_EQ(fleet.label_of("n02", kConfigLabel), label);
  EXPECT_THAT(done.kept, ElementsAre(HasSubstr("node n02: label")));
  EXPECT_THAT(fleet.world.policies.find("p")->finalizers, IsEmpty());
  EXPECT_THAT(left_on_nodes(fleet), IsEmpty());
}

TEST_F(LabelOfAPolicy, StaysWithRevertWhereThePodsCannotBeReadAndTheReasonIsNamed) {
  apply("Revert");
  const Cleanup done = leave(fleet, {.used = {}, .unknown = {{"n02", "Pod team/job: spec must be an object"}}});
  EXPECT_EQ(fleet.label_of("n01", kConfigLabel), "");
  EXPECT_EQ(fleet.label_of("n02", kConfigLabel), label);
  EXPECT_THAT(done.kept, ElementsAre(AllOf(HasSubstr("node n02: label"), HasSubstr("pods might use the GPUs"),
                                           HasSubstr("Pod team/job: spec must be an object"))));
}

// n01 and n02 are partitioned, n02 is in use, and n03 has lost the label of nos.
TEST(PlannerCleanup, NodesThatWerePartitionedGetTheirProfileLabelBackWhereNobodyUsesTheirSlices) {
  FleetModel fleet(spec_of(3, "ts-2"));
  for (const std::string node : {"n01", "n02", "n03"}) {
    const std::string key = "gso-" + node + "-1-2";
    if (node != "n03") fleet.label(node, std::string(kNosPartitioning), "mps");
    if (node == "n01") fleet.label(node, std::string(kNosPartitioningBefore), "mps");
    fleet.label(node, std::string(kConfigLabel), key);
    fleet.annotate(node, kPartitioningAnnotation,
                   R"({"v":1,"key":")" + key + R"(","moved":"2026-01-01T00:00:00Z","before":"team","labelled":)" +
                       (node == "n01" ? "true" : "false") + "}");
  }
  fleet.index.note_everything_changed();
  fleet.index.refresh(fleet.world, fleet.settings);
  EXPECT_THAT(nodes_to_revert(fleet.world, fleet.index), ElementsAre("n01", "n02", "n03"));
  const Cleanup done = leave(fleet, {.used = {"n02"}, .unknown = {}});
  EXPECT_EQ(fleet.label_of("n01", kConfigLabel), "team");
  EXPECT_EQ(fleet.label_of("n01", kNosPartitioning), "") << "the operator had set it beside the former name";
  EXPECT_EQ(fleet.label_of("n02", kConfigLabel), "gso-n02-1-2");
  EXPECT_EQ(fleet.label_of("n03", kConfigLabel), "team");
  EXPECT_THAT(done.kept, ElementsAre(HasSubstr("node n02: label nvidia.com/device-plugin.config=gso-n02-1-2 is kept")));
  EXPECT_THAT(left_on_nodes(fleet), IsEmpty());
}

// What an unreadable annotation says is not known: neither the planners nor `cleanup` end it.
TEST(PlannerCleanup, AnAnnotationThatCannotBeReadStaysWithWhatIsBesideIt) {
  for (const std::string_view annotation :
       {kChangeAnnotation, kMpsDaemonChangeAnnotation, kOwnedAnnotation, kPartitioningAnnotation}) {
    const std::string text = annotation == kMpsDaemonChangeAnnotation ? R"({"v":9,"cordoned":true})" : "{";
    FleetModel fleet(spec_of(1, "ts-2"));
    fleet.cordon("n01", true);
    fleet.label("n01", std::string(kNosPartitioning), "mps");
    fleet.label("n01", std::string(kConfigLabel), "gso-n01-1-2");
    fleet.annotate("n01", annotation, text);
    const Cleanup done = leave(fleet);
    EXPECT_THAT(done.kept, ElementsAre(AllOf(HasSubstr("node n01: annotation " + std::string(annotation)),
                                             HasSubstr("the annotation is kept"))));
    EXPECT_EQ(fleet.annotation_of("n01", annotation), text);
    EXPECT_EQ(fleet.label_of("n01", kConfigLabel), "gso-n01-1-2");
    EXPECT_EQ(fleet.label_of("n01", kNosPartitioning), "mps");
    EXPECT_TRUE(fleet.node("n01").unschedulable);
  }
}

TEST(PlannerCleanup, TheMarkForKaisMpsPodsGoesWhereItIsTheOperators) {
  FleetModel fleet(spec_of(2, "mps-4"));
  for (const char* node : {"n01", "n02"}) fleet.label(node, std::string(kMpsEnabled), "true");
  fleet.annotate("n01", kMpsMarkAnnotation, "true");
  (void)leave(fleet);
  EXPECT_EQ(fleet.label_of("n01", kMpsEnabled), "");
  EXPECT_EQ(fleet.label_of("n02", kMpsEnabled), "true");
  EXPECT_THAT(left_on_nodes(fleet), IsEmpty());
}

TEST(PlannerCleanup, AFleetThatWeNeverTouchedIsNotWritten) {
  FleetModel fleet(spec_of(3, "mps-4"));
  EXPECT_TRUE(leave(fleet).actions.empty());
}

}  // namespace
}  // namespace gso::test::cleanup_test
