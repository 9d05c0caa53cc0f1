// Nodes that are left as they are, and what is said of them: held ones, tainted ones, and DaemonSets changed by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "reconcilers/model/labels.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using Json = nlohmann::json;

std::unique_ptr<FleetModel> fleet_of(int nodes, const char* profile) {
  FleetSpec spec;
  spec.profiles = {{"any", profile}, {"other", "ts-2"}};
  spec.nodes = alike_nodes(nodes);
  auto fleet = std::make_unique<FleetModel>(spec);
  fleet->settings.cluster_max_unavailable = {100, true};
  fleet->settings.rollout.canary_soak = 5s;
  EXPECT_TRUE(fleet->settle());
  fleet->advance(5s);
  return fleet;
}

const std::vector<Taint> kNoSchedule = {
    {k8s::Interned("maintenance"), k8s::Interned("true"), k8s::Interned("NoSchedule")}};

std::vector<std::string> messages(const Plan& plan, std::string_view reason) {
  std::vector<std::string> out;
  for (const Finding& finding : plan.findings) {
    if (finding.reason == reason) out.push_back(finding.object.name + ": " + finding.message);
  }
  return out;
}

std::set<std::string> deleted(const Plan& plan) {
  std::set<std::string> out;
  for (const PlannedAction& planned : plan.actions) {
    if (const auto* pod = std::get_if<DeletePod>(&planned.action)) out.insert(pod->pod.name.substr(0, 3));
  }
  return out;
}

TEST(SetAside, AHoldCountsAsAnnotationAndAsLabel) {
  const std::string key(kHoldAnnotation);
  for (const bool by_label : {false, true}) {
    const auto fleet = fleet_of(2, "ts-4");
    const auto hold = [&](std::optional<std::string> value) {
      by_label ? fleet->label("n01", key, value) : fleet->annotate("n01", key, value);
    };
    hold("true");
    EXPECT_TRUE(is_held(fleet->node("n01")));
    EXPECT_EQ(hold_of(fleet->node("n01")), (by_label ? "label " : "annotation ") + key);
    fleet->edit("any", "ts-8");
    EXPECT_TRUE(fleet->settle());
    EXPECT_EQ(fleet->restarts("n01", "plugin"), 0) << by_label;
    EXPECT_EQ(fleet->restarts("n02", "plugin"), 1) << by_label;
    hold(std::nullopt);
    EXPECT_TRUE(fleet->settle());
    EXPECT_EQ(fleet->restarts("n01", "plugin"), 1) << by_label;
    hold("yes");
    EXPECT_FALSE(is_held(fleet->node("n01"))) << "only the value true holds";
  }
}

TEST(SetAside, ATaintedNodeIsCountedAndBlockedByNameAndGoesOnWithoutTheTaint) {
  const auto fleet = fleet_of(10, "ts-4");
  for (const char* name : {"n01", "n02", "n03"}) fleet->taint(name, kNoSchedule);
  fleet->edit("any", "ts-8");
  EXPECT_TRUE(fleet->settle());
  for (const char* name : {"n01", "n02", "n03"}) EXPECT_EQ(fleet->restarts(name, "plugin"), 0) << name;
  EXPECT_EQ(fleet->restarts("n04", "plugin"), 1);
  EXPECT_EQ(fleet->label_of("n01", std::string(kStateLabel)), "Blocked");
  EXPECT_THAT(fleet->annotation_of("n01", kMessageAnnotation),
              AllOf(HasSubstr("maintenance=true:NoSchedule"),
                    HasSubstr("DaemonSet gpu-operator/nvidia-device-plugin-daemonset does not tolerate"),
                    HasSubstr("spec.daemonsets.tolerations")));
  const Json status = Json::parse(fleet->policy_status("default"));
  EXPECT_EQ(status["nodes"]["total"], 10);
  EXPECT_EQ(status["nodes"]["blocked"], 3);
  EXPECT_EQ(status["blocked"][0]["reason"], kTaintNotTolerated);
  EXPECT_EQ(status["conditions"][0]["status"], "False") << status["conditions"][0];
  for (const char* name : {"n01", "n02", "n03"}) fleet->taint(name, {});
  EXPECT_TRUE(fleet->settle());
  EXPECT_EQ(fleet->restarts("n01", "plugin"), 1);
  EXPECT_EQ(fleet->label_of("n01", std::string(kStateLabel)), "");
}

TEST(SetAside, ATaintedNodeThatNeedsNothingIsUpToDate) {
  const auto fleet = fleet_of(2, "ts-4");
  fleet->taint("n01", kNoSchedule);
  EXPECT_TRUE(fleet->settle());
  const Json status = Json::parse(fleet->policy_status("default"));
  EXPECT_EQ(status["nodes"]["upToDate"], 2);
  EXPECT_EQ(fleet->patches("n01"), 0);
}

TEST(SetAside, ATaintedNodeThatDriftsIsNotRestarted) {
  const auto fleet = fleet_of(2, "ts-4");
  fleet->taint("n01", kNoSchedule);
  fleet->label("n01", std::string(kGpuReplicas), "7");
  fleet->stick_labels("n01", true);
  for (int i = 0; i < 1000; ++i) ASSERT_THAT(deleted(fleet->tick()), IsEmpty()) << i;
}

TEST(SetAside, ANodeThatIsTaintedWhileItDrainsIsGivenBackUntouched) {
  const auto fleet = fleet_of(1, "mps-4");
  fleet->use("n01", "job", "nvidia.com/gpu", 1);
  fleet->edit("any", "mps-8");
  for (int i = 0; i < 30; ++i) fleet->tick();
  ASSERT_TRUE(fleet->node("n01").unschedulable) << "it waits for the job";
  fleet->taint("n01", kNoSchedule);
  fleet->release("n01");
  EXPECT_TRUE(fleet->settle());
  EXPECT_FALSE(fleet->node("n01").unschedulable);
  EXPECT_EQ(fleet->restarts("n01", "mps"), 0);
  EXPECT_EQ(fleet->label_of("n01", std::string(kStateLabel)), "Blocked");
}

TEST(SetAside, ANodeThatIsTaintedHalfWayLosesNoFurtherPod) {
  const auto fleet = fleet_of(1, "mps-4");
  fleet->edit("any", "mps-8");
  std::set<std::string> first;
  for (int i = 0; i < 60 && first.empty(); ++i) first = deleted(fleet->tick());
  ASSERT_EQ(first, (std::set<std::string>{"gfd", "mps"}));
  fleet->taint("n01", kNoSchedule);
  for (int i = 0; i < 900; ++i) ASSERT_THAT(deleted(fleet->tick()), IsEmpty()) << i;
  EXPECT_THAT(messages(fleet->plan(), kTaintNotTolerated),
              testing::ElementsAre(HasSubstr("nothing more is restarted: the node has the taint")));
  fleet->taint("n01", {});
  EXPECT_TRUE(fleet->settle());
  EXPECT_EQ(fleet->restarts("n01", "plugin"), 1);
  EXPECT_FALSE(fleet->node("n01").unschedulable);
}

TEST(SetAside, DaemonSetsThatWereChangedByHandAreNamedAfterTwoMinutes) {
  const auto fleet = fleet_of(2, "ts-4");
  fleet->roll_templates("other");
  fleet->announce_default("any");  // What the ClusterPolicy said before, and says still.
  const auto tick_for = [&](Duration span) {
    Plan last;
    for (const WallTime end = fleet->now + std::chrono::duration_cast<std::chrono::milliseconds>(span);
         fleet->now < end;)
      last = fleet->tick();
    return last;
  };
  EXPECT_THAT(messages(tick_for(100s), kDaemonSetDiffers), IsEmpty()) << "the GPU Operator may be at work";
  EXPECT_THAT(
      messages(tick_for(30s), kDaemonSetDiffers),
      testing::ElementsAre(AllOf(HasSubstr("default other"),
                                 HasSubstr("while ClusterPolicy cluster-policy says config mps-config default any"),
                                 HasSubstr("by hand"))));
  fleet->edit("other", "ts-8");
  tick_for(30s);
  const Json status = Json::parse(fleet->policy_status("default"));
  EXPECT_EQ(status["conditions"][1]["reason"], kGpuOperatorUpdating);
  EXPECT_THAT(status["conditions"][1]["message"].get<std::string>(), HasSubstr("by hand"));
  fleet->announce_default("other");
  EXPECT_THAT(messages(tick_for(5s), kDaemonSetDiffers), IsEmpty());
  EXPECT_TRUE(fleet->settle());
  EXPECT_EQ(fleet->allocatable("n01", "nvidia.com/gpu"), 16) << "and the edit is rolled out";
}

TEST(SetAside, AMissingKeyAmongManyIsNamedInAShortMessage) {
  FleetSpec spec;
  spec.nodes = alike_nodes(2);
  for (int i = 0; i < 600; ++i) spec.profiles["a-rather-long-name-of-a-profile-" + std::to_string(i)] = "ts-2";
  FleetModel fleet(spec);
  ASSERT_TRUE(fleet.settle());
  fleet.policy(
      "apiVersion: gpusharing.dev/v1alpha1\nkind: SharingPolicy\nmetadata: {name: p}\n"
      "spec: {priority: 1, profile: {configMapKey: typo}}\n");
  EXPECT_TRUE(fleet.settle());
  const Json status = Json::parse(fleet.policy_status("p"));
  for (const Json& condition : status["conditions"]) EXPECT_LE(condition["message"].get<std::string>().size(), 1024U);
  EXPECT_THAT(status["conditions"][3]["message"].get<std::string>(),
              AllOf(HasSubstr("typo"), HasSubstr("and 596 more")));
}

}  // namespace
}  // namespace gso::test
