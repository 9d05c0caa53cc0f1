// Nodes that the operator does not change, and what it reports about them: held ones, tainted ones, and DaemonSets
// changed by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "reconcilers/model/labels.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/reasons/names.h"
#include "tests/reconcilers/rollout/rollout_fleet.h"

namespace gso::test::set_aside_test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using Json = nlohmann::json;

std::unique_ptr<FleetModel> fleet_of(int nodes, const char* profile) {
  FleetSpec spec = spec_of(nodes, profile);
  spec.profiles["other"] = "ts-2";
  auto fleet = std::make_unique<FleetModel>(spec);
  free_cluster_budget(*fleet);
  fleet->settings.rollout.canary_soak = 5s;
  EXPECT_TRUE(fleet->settle());
  fleet->advance(5s);
  return fleet;
}

const std::vector<Taint> kNoSchedule = {
    {k8s::Interned("maintenance"), k8s::Interned("true"), k8s::Interned("NoSchedule")}};

std::set<std::string> deleted(const Plan& plan) {
  std::set<std::string> out;
  for (const PlannedAction& planned : plan.actions)
    if (const auto* pod = std::get_if<DeletePod>(&planned.action)) out.insert(pod->pod.name.substr(0, 3));
  return out;
}

// n01 waits for its job.
std::unique_ptr<FleetModel> draining_fleet() {
  auto fleet = fleet_of(1, "mps-4");
  fleet->use("n01", "job", "nvidia.com/gpu", 1);
  fleet->edit("any", "mps-8");
  tick(*fleet, 30);
  EXPECT_TRUE(fleet->node("n01").unschedulable);
  return fleet;
}

void expect_no_restart_of_drift(FleetModel& fleet) {
  fleet.label("n01", std::string(kGpuReplicas), "7");
  fleet.stick_labels("n01", true);
  for (int i = 0; i < 1000; ++i) ASSERT_THAT(deleted(fleet.tick()), IsEmpty()) << i;
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
    hold("treu");
    EXPECT_TRUE(is_held(fleet->node("n01"))) << "in doubt it holds";
    hold("No");
    EXPECT_FALSE(is_held(fleet->node("n01")));
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

TEST(SetAside, ATaintedNodeIsUpToDateAndNotRestartedThoughItDrifts) {
  const auto fleet = fleet_of(2, "ts-4");
  fleet->taint("n01", kNoSchedule);
  EXPECT_TRUE(fleet->settle());
  EXPECT_EQ(Json::parse(fleet->policy_status("default"))["nodes"]["upToDate"], 2);
  EXPECT_EQ(fleet->patches("n01"), 0);
  expect_no_restart_of_drift(*fleet);
}

TEST(SetAside, ANodeThatIsTaintedWhileItDrainsIsUncordonedUntouched) {
  const auto fleet = draining_fleet();
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
  EXPECT_THAT(said_with(fleet->plan(), kTaintNotTolerated),
              testing::ElementsAre(HasSubstr("no more pods are restarted: the node has the taint")));
  fleet->taint("n01", {});
  EXPECT_TRUE(fleet->settle());
  EXPECT_EQ(fleet->restarts("n01", "plugin"), 1);
  EXPECT_FALSE(fleet->node("n01").unschedulable);
}

// What a remediation system writes on a node that it has taken out of service.
struct Mark {
  const char* label = nullptr;  // If null, a taint.
  const char* taint = nullptr;
  const char* value = "";
  const char* by = "";  // The name in the message.
};

void put(FleetModel& fleet, const std::string& node, const Mark& mark) {
  if (mark.label != nullptr) return fleet.label(node, mark.label, mark.value);
  fleet.taint(node, {{k8s::Interned(mark.taint), k8s::Interned(mark.value), k8s::Interned("NoSchedule")}});
}

void clear(FleetModel& fleet, const std::string& node, const Mark& mark) {
  if (mark.label != nullptr) return fleet.label(node, mark.label, std::nullopt);
  fleet.taint(node, {});
}

constexpr Mark kQuarantines[] = {
    {.label = "dgxc.nvidia.com/nvsentinel-state", .value = "remediation-failed", .by = "NVSentinel"},
    {.label = "sagemaker.amazonaws.com/node-health-status", .value = "UnschedulablePendingReboot", .by = "SageMaker"},
    {.taint = "sagemaker.amazonaws.com/node-health-status", .value = "Unschedulable", .by = "SageMaker"},
    {.label = "cloud.google.com/active-node-maintenance", .value = "ONGOING", .by = "GKE"},
    {.taint = "cloud.google.com/impending-node-termination", .by = "GKE"},
    {.taint = "remediator.kubernetes.azure.com/unschedulable", .by = "AKS"},
    {.taint = "remediator.aks.microsoft.com/unschedulable", .by = "AKS"},
    {.taint = "medik8s.io/remediation", .value = "self-node-remediation", .by = "Self Node Remediation"},
    {.taint = "medik8s.io/fence-agents-remediation", .by = "Fence Agents Remediation"},
    {.taint = "remediation.medik8s.io/fence-agents-remediation", .by = "Fence Agents Remediation"},
    {.taint = "medik8s.io/drain", .by = "Node Maintenance Operator"},
    {.taint = "node.kubernetes.io/out-of-service", .value = "nodeshutdown", .by = "shut down"},
    {.taint = "karpenter.sh/disrupted", .by = "Karpenter"},
};

TEST(SetAside, AQuarantinedNodeIsHeldByNameAndNotRepairedThoughItServesNobody) {
  for (const Mark& mark : kQuarantines) {
    SCOPED_TRACE(mark.label != nullptr ? mark.label : mark.taint);
    const auto fleet = fleet_of(2, "ts-4");
    fleet->policy(rollout_of("maxUnavailable: 2, maxUnavailablePerGroup: 2, canary: {soak: 5s}"));
    fleet->cordon("n01", true);
    put(*fleet, "n01", mark);
    fleet->edit("any", "ts-8");
    EXPECT_TRUE(fleet->settle());
    EXPECT_EQ(fleet->restarts("n01", "plugin"), 0);
    EXPECT_EQ(fleet->restarts("n02", "plugin"), 1);
    EXPECT_EQ(fleet->patches("n01"), 0);
    const Json status = Json::parse(fleet->policy_status("default"));
    const Json blocked = status.value("blocked", Json::array());
    ASSERT_EQ(blocked.size(), 1U) << status;
    EXPECT_EQ(blocked[0]["reason"], "Quarantined");
    EXPECT_THAT(blocked[0].dump(), HasSubstr(mark.by));
    EXPECT_EQ(phase_of(*fleet->index.assessment("n01")), Phase::held);
    clear(*fleet, "n01", mark);
    EXPECT_TRUE(fleet->settle());
    EXPECT_EQ(fleet->restarts("n01", "plugin"), 1) << "cordoned by somebody, and no longer quarantined";
  }
}

TEST(SetAside, AQuarantinedNodeThatDriftsIsNotRestarted) {
  const auto fleet = fleet_of(2, "ts-4");
  put(*fleet, "n01", kQuarantines[0]);
  expect_no_restart_of_drift(*fleet);
}

TEST(SetAside, ANodeThatIsQuarantinedWhileItDrainsKeepsItsCordonUntilThatIsOver) {
  const auto fleet = draining_fleet();
  put(*fleet, "n01", kQuarantines[0]);
  fleet->release("n01");
  EXPECT_TRUE(fleet->settle());
  EXPECT_TRUE(fleet->node("n01").unschedulable);
  EXPECT_EQ(fleet->restarts("n01", "mps"), 0);
  clear(*fleet, "n01", kQuarantines[0]);
  EXPECT_TRUE(fleet->settle());
  EXPECT_EQ(fleet->restarts("n01", "mps"), 1);
  EXPECT_FALSE(fleet->node("n01").unschedulable);
}

TEST(SetAside, MarksOfAHealthyNodeHoldNobody) {
  constexpr Mark kHealthy[] = {
      {.label = "sagemaker.amazonaws.com/node-health-status", .value = "Schedulable"},
      {.label = "cloud.google.com/active-node-maintenance", .value = "PENDING"},
      {.label = "dgxc.nvidia.com/nvsentinel-state", .value = ""},
      // This system sets a taint with that key, not a label.
      {.label = "medik8s.io/remediation", .value = "self-node-remediation"},
  };
  for (const Mark& mark : kHealthy) {
    SCOPED_TRACE(mark.label);
    const auto fleet = fleet_of(1, "ts-4");
    put(*fleet, "n01", mark);
    fleet->edit("any", "ts-8");
    EXPECT_TRUE(fleet->settle());
    EXPECT_EQ(fleet->restarts("n01", "plugin"), 1);
  }
}

TEST(SetAside, ANodeWhoseDeferralCannotBeReadDoesNotStartUntilAPersonRemovesIt) {
  const auto fleet = fleet_of(2, "mps-4");
  fleet->edit("any", "mps-8");
  fleet->annotate("n01", kDeferredAnnotation, R"({"v":2,"to":"v2-later"})");
  EXPECT_TRUE(fleet->settle());
  EXPECT_EQ(fleet->patches("n01"), 0) << "not cordoned, and the annotation is left";
  EXPECT_EQ(fleet->restarts("n01", "mps"), 0);
  EXPECT_EQ(fleet->restarts("n02", "mps"), 1);
  EXPECT_THAT(said_with(fleet->plan(), "DeferralUnreadable"),
              testing::ElementsAre(AllOf(HasSubstr("version 2 was written by another release"),
                                         HasSubstr("kubectl annotate node n01 gpusharing.dev/deferred-"))));
  EXPECT_FALSE(fleet->policy_status("default").contains("WaitingForWorkloads"));
  EXPECT_EQ(Json::parse(fleet->policy_status("default"))["nodes"]["blocked"], 1);
  fleet->annotate("n01", kDeferredAnnotation, std::nullopt);
  EXPECT_TRUE(fleet->settle());
  EXPECT_EQ(fleet->restarts("n01", "mps"), 1);
}

TEST(SetAside, ANodeIsHeldWhileWhatTheOperatorOwnsThereCannotBeRead) {
  const auto fleet = fleet_of(2, "ts-4");
  constexpr std::string_view kNewer = R"({"v":2,"labels":{}})";
  fleet->annotate("n01", kOwnedAnnotation, std::string(kNewer));
  fleet->edit("any", "ts-8");
  EXPECT_TRUE(fleet->settle());
  EXPECT_EQ(fleet->patches("n01"), 0);
  EXPECT_EQ(fleet->restarts("n01", "plugin"), 0);
  EXPECT_EQ(fleet->restarts("n02", "plugin"), 1);
  EXPECT_EQ(fleet->node("n01").meta.annotations.get(kOwnedAnnotation), kNewer);
  EXPECT_THAT(said_with(fleet->plan(), "OwnedUnreadable"),
              testing::ElementsAre(AllOf(HasSubstr("version 2 was written by another release"),
                                         HasSubstr("kubectl annotate node n01 gpusharing.dev/owned-"))));
  fleet->annotate("n01", kOwnedAnnotation, std::nullopt);
  EXPECT_TRUE(fleet->settle());
  EXPECT_EQ(fleet->restarts("n01", "plugin"), 1);
}

TEST(SetAside, ANodeThatNeedsNothingLosesADeferralThatCannotBeRead) {
  const auto fleet = fleet_of(1, "mps-4");
  fleet->annotate("n01", kDeferredAnnotation, "?");
  EXPECT_TRUE(fleet->settle());
  EXPECT_FALSE(fleet->node("n01").meta.annotations.contains(kDeferredAnnotation));
}

TEST(SetAside, DaemonSetsThatWereChangedByHandAreNamedAfterTwoMinutes) {
  const auto fleet = fleet_of(2, "ts-4");
  fleet->roll_templates("other");
  fleet->announce_default("any");  // What the ClusterPolicy announced before, and still announces.
  const auto tick_for = [&](Duration span) {
    Plan last;
    for (const WallTime end = fleet->now + std::chrono::duration_cast<std::chrono::milliseconds>(span);
         fleet->now < end;)
      last = fleet->tick();
    return last;
  };
  EXPECT_THAT(said_with(tick_for(100s), kDaemonSetDiffers), IsEmpty()) << "the GPU Operator may be at work";
  EXPECT_THAT(
      said_with(tick_for(30s), kDaemonSetDiffers),
      testing::ElementsAre(AllOf(HasSubstr("default other"),
                                 HasSubstr("but ClusterPolicy cluster-policy has config mps-config default any"),
                                 HasSubstr("by hand"))));
  fleet->edit("other", "ts-8");
  tick_for(30s);
  const Json status = Json::parse(fleet->policy_status("default"));
  EXPECT_EQ(status["conditions"][1]["reason"], kGpuOperatorUpdating);
  EXPECT_THAT(status["conditions"][1]["message"].get<std::string>(), HasSubstr("by hand"));
  fleet->announce_default("other");
  EXPECT_THAT(said_with(tick_for(5s), kDaemonSetDiffers), IsEmpty());
  EXPECT_TRUE(fleet->settle());
  EXPECT_EQ(fleet->allocatable("n01", "nvidia.com/gpu"), 16) << "and the edit is rolled out";
}

TEST(SetAside, AMissingKeyAmongManyIsNamedInAShortMessage) {
  FleetSpec spec = spec_of(2, "mps-4");
  for (int i = 0; i < 600; ++i) spec.profiles["a-rather-long-name-of-a-profile-" + std::to_string(i)] = "ts-2";
  FleetModel fleet(spec);
  ASSERT_TRUE(fleet.settle());
  fleet.policy(policy_of("priority: 1, profile: {configMapKey: typo}", "p"));
  EXPECT_TRUE(fleet.settle());
  const Json status = Json::parse(fleet.policy_status("p"));
  for (const Json& condition : status["conditions"]) EXPECT_LE(condition["message"].get<std::string>().size(), 1024U);
  EXPECT_THAT(status["conditions"][3]["message"].get<std::string>(),
              AllOf(HasSubstr("typo"), HasSubstr("and 596 more")));
}

}  // namespace
}  // namespace gso::test::set_aside_test
