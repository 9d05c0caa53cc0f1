// The rows N1 to N8 of node_step.h: the phase of a node without a change, and what the planners then do with it. Row
// C2, its half that the assessment decides: a node whose change has failed needs another one.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/reasons/names.h"
#include "tests/reconcilers/node/node_in_fleet.h"

namespace gso::test::node_without_change_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class NodeWithoutChange : public NodeInFleet {
 protected:
  static std::string policy(std::string_view name, std::string_view spec) {
    return fmt::format("{{apiVersion: gpusharing.dev/v1alpha1, kind: SharingPolicy, metadata: {{name: {}}}, spec: {}}}",
                       name, spec);
  }
};

TEST_F(NodeWithoutChange, N3_AChangeThatCannotBeReadHoldsTheNodeUntilAPersonRemovesIt) {
  fleet().annotate(kName, kChangeAnnotation, "{\"v\":1");
  fleet_->edit("any", "ts-8");
  EXPECT_EQ(phase(), Phase::held);
  EXPECT_EQ(reason(), kChangeUnreadable);
  EXPECT_TRUE(findings().contains(std::string(kChangeUnreadable)));
  EXPECT_EQ(until_action(1800), -1);
  fleet_->annotate(kName, kChangeAnnotation, std::nullopt);
  EXPECT_EQ(phase(), Phase::pending);
}

TEST_F(NodeWithoutChange, N1_ANodeWithoutPluginIsUnmanagedAndLosesWhatAChangeLeftAfterTwoMinutes) {
  fleet().edit("any", "mps-8");
  EXPECT_NE(until_action(300), -1) << "the change begins";
  fleet_->tick();
  ASSERT_NE(fleet_->annotation_of(kName, kChangeAnnotation), "");
  fleet_->set_daemonsets_there(false);
  EXPECT_EQ(phase(), Phase::unmanaged);
  expect_action_after(120);
  EXPECT_EQ(actions(), Actions{std::string(kAbandoned)});
  EXPECT_TRUE(fleet_->settle());
  EXPECT_EQ(fleet_->annotation_of(kName, kChangeAnnotation), "");
  EXPECT_FALSE(fleet_->node(kName).unschedulable);
}

TEST_F(NodeWithoutChange, N1_ANodeThatNosTakesOverLosesTheMarksAtOnce) {
  fleet().edit("any", "mps-8");
  for (const char* node : {kName, "n02"}) fleet_->use(node, std::string("job-") + node, std::string(kGpuResource), 1);
  EXPECT_NE(until_action(300), -1) << "it begins to wait for its workload";
  fleet_->tick();
  ASSERT_TRUE(fleet_->node(kName).unschedulable);
  fleet_->label(kName, std::string(kNosPartitioning), "mps");
  EXPECT_EQ(phase(), Phase::unmanaged);
  EXPECT_LE(until_action(10), 1);
}

TEST_F(NodeWithoutChange, N2_ANodeWithoutBaselineIsRecordedAndNotChanged) {
  fleet({}, false);
  EXPECT_EQ(phase(), Phase::unrecorded);
  fleet_->edit("any", "ts-8");
  EXPECT_EQ(actions(), Actions{});
}

TEST_F(NodeWithoutChange, N4_ANodeWithoutValidTargetIsBlockedAndKeepsWhatItRuns) {
  fleet().edit("any", "broken");
  EXPECT_EQ(phase(), Phase::blocked);
  EXPECT_EQ(reason(), kConfigInvalid);
  EXPECT_TRUE(fleet_->settle());
  EXPECT_EQ(fleet_->restarts(kName, "plugin"), 0);
}

TEST_F(NodeWithoutChange, N5_ANodeThatLoadedByItselfIsRecordedOnceItShowsItsProfileOrRestartedAfterVerifyTimeout) {
  fleet().advance(10min);
  NodeSpec joins;
  for (const char* name : {"n03", "n04"}) {
    joins.name = name;
    fleet_->add_node(joins);
    EXPECT_EQ(phase(name), Phase::verifying);
  }
  fleet_->stick_sidecars("n03", true);
  expect_action_after(600, "n03");
  EXPECT_EQ(actions("n03"), kRestarted);
  EXPECT_EQ(phase("n04"), Phase::up_to_date);
  EXPECT_NE(fleet_->annotation_of("n04", kRevisionAnnotation), "");
  fleet_->stick_sidecars("n03", false);
  EXPECT_TRUE(fleet_->settle());
  EXPECT_EQ(phase("n03"), Phase::up_to_date);
  EXPECT_EQ(fleet_->restarts("n03", "plugin"), 2) << "its first pod, and the one of the restart";
  EXPECT_EQ(fleet_->restarts("n04", "plugin"), 1) << "its first pod, and no other";
}

TEST_F(NodeWithoutChange, N5_ANodeWhoseLabelWasMovedAndThatDoesNotReloadIsRestartedAfterTwoMinutes) {
  fleet().stick_sidecars(kName, true);
  fleet_->label(kName, std::string(kConfigLabel), "other");
  EXPECT_EQ(phase(), Phase::verifying);
  EXPECT_EQ(cause(), ChangeCause::relabelled);
  expect_action_after(120);
  EXPECT_EQ(actions(), kRestarted);
  fleet_->stick_sidecars(kName, false);
  EXPECT_TRUE(fleet_->settle());
  EXPECT_EQ(phase(), Phase::up_to_date);
  EXPECT_EQ(fleet_->label_of(kName, kGpuReplicas), "2");
  EXPECT_EQ(fleet_->restarts(kName, "plugin"), 1);
}

TEST_F(NodeWithoutChange, N6_ANodeWhosePodsAreReplacedByRollingUpdateIsOnlyFollowed) {
  fleet().roll_templates("other");
  std::set<Phase> seen;
  for (int second = 0; second < 120; ++second) {
    seen.insert(phase());
    for (const std::string& action : actions()) EXPECT_NE(action, "delete") << "the DaemonSet controller does that";
    fleet_->tick();
  }
  EXPECT_TRUE(seen.contains(Phase::following_daemonset));
  EXPECT_EQ(phase(), Phase::up_to_date);
}

// The other node is lost without its pods, so the DaemonSet controller replaces no further one.
TEST_F(NodeWithoutChange, N6_AWarningSaysThatNoPodIsReplacedForVerifyTimeout) {
  fleet().set_ready("n02", false);
  for (const char* component : {"plugin", "gfd"}) fleet_->delete_pod_of("n02", component);
  fleet_->roll_templates("other");
  EXPECT_EQ(phase(), Phase::following_daemonset);
  const auto stalls = [&] {
    return std::ranges::any_of(fleet_->plan().findings, [](const Finding& finding) {
      return finding.why.code == kRollingUpdateStalled && finding.severity == Severity::warning;
    });
  };
  const int waited = until(900, stalls);
  EXPECT_GE(waited, 600);
  EXPECT_LE(waited, 605);
  EXPECT_EQ(phase(), Phase::following_daemonset);
  EXPECT_EQ(fleet_->restarts(kName, "plugin"), 0) << "the operator does not do what the controller does not";
  fleet_->set_ready("n02", true);
  EXPECT_TRUE(fleet_->settle());
  EXPECT_FALSE(stalls());
  EXPECT_EQ(phase(), Phase::up_to_date);
}

TEST_F(NodeWithoutChange, N7_TheStatusOfThePolicySaysWhatTheNodeDoesNotShowAndWhatFollows) {
  fleet();
  fleet_->crash_pods(kName, true);
  fleet_->delete_pod_of(kName, "plugin");
  fleet_->advance(2s);
  fleet_->tick();
  ASSERT_EQ(findings(), std::set<std::string>{std::string(kDrift)});
  const std::string said = fleet_->policy_status("default");
  EXPECT_THAT(said, HasSubstr(R"("message":"n01 does not show the profile that it runs: )"));
  EXPECT_THAT(said, HasSubstr(R"(. If that lasts for 10m0s (verifyTimeout), the operator restarts its pods")"));
}

// Twice for nine of the ten minutes: the time starts again when it shows its target.
TEST_F(NodeWithoutChange, N7_ANodeThatDoesNotShowItsTargetForLessThanVerifyTimeoutIsLeftAlone) {
  fleet();
  for (int turn = 0; turn < 2; ++turn) {
    fleet_->crash_pods(kName, true);
    fleet_->delete_pod_of(kName, "plugin");
    fleet_->advance(2s);
    EXPECT_EQ(phase(), Phase::up_to_date);
    EXPECT_EQ(findings(), std::set<std::string>{std::string(kDrift)});
    EXPECT_EQ(until_action(540), -1);
    fleet_->crash_pods(kName, false);
    EXPECT_EQ(until_action(10), -1);
    EXPECT_EQ(findings(), std::set<std::string>{});
  }
}

// No label shows how it differs from ts-N.
std::string loud(int replicas) {
  return fmt::format(
      "version: v1\nsharing:\n  timeSlicing:\n    failRequestsGreaterThanOne: true\n    resources:\n    - {{name: "
      "nvidia.com/gpu, replicas: {}}}\n",
      replicas);
}

TEST_F(NodeWithoutChange, N8_ANodeThatLostItsAnnotationsRunsWhatItsPodsHaveRead) {
  fleet().settings.rollout.canary_nodes_per_group = 0;
  fleet_->annotate("n02", kHoldAnnotation, "true");
  fleet_->edit("any", loud(4));
  ASSERT_NE(until(600, [&] { return !fleet_->annotation_of(kName, kRevisionAnnotation).empty(); }), -1);
  fleet_->edit("any", "ts-4");
  EXPECT_EQ(phase(), Phase::pending);
  for (const auto key : {kRevisionAnnotation, kProfileAnnotation}) fleet_->annotate(kName, key, std::nullopt);
  EXPECT_EQ(phase(), Phase::pending);
  EXPECT_EQ(cause(), ChangeCause::edited);
  EXPECT_EQ(phase("n02"), Phase::up_to_date) << "its pods are older than both edits";
  EXPECT_TRUE(fleet_->settle());
  EXPECT_EQ(phase(), Phase::up_to_date);
  EXPECT_EQ(fleet_->restarts(kName, "plugin"), 2);
}

TEST_F(NodeWithoutChange, N8_ANodeWhosePodsCameBetweenAnEditAndItsReturnIsChanged) {
  fleet().settings.rollout.canary_nodes_per_group = 0;
  fleet_->hold_pods(kName, true);
  fleet_->edit("any", loud(4));
  fleet_->advance(std::chrono::seconds(2));
  (void)fleet_->tick();
  fleet_->delete_pod_of(kName, "plugin");
  fleet_->annotate(kName, kHoldAnnotation, "true");
  fleet_->annotate("n02", kHoldAnnotation, "true");
  until(60, [] { return false; });
  fleet_->hold_pods(kName, false);
  fleet_->edit("any", "ts-4");
  fleet_->annotate(kName, kHoldAnnotation, std::nullopt);
  EXPECT_TRUE(fleet_->settle());
  EXPECT_EQ(fleet_->restarts(kName, "plugin"), 2) << "by somebody, and by the operator";
}

// Its containers restarted while another text was there for a moment, which the operator has never seen.
TEST_F(NodeWithoutChange, N7_ANodeThatStopsShowingItsTargetIsReportedAndRepairedAfterVerifyTimeout) {
  fleet().edit("any", "ts-8");
  fleet_->reboot(kName);
  fleet_->edit("any", "ts-4");
  ASSERT_EQ(fleet_->label_of(kName, kGpuReplicas), "8");
  EXPECT_EQ(phase(), Phase::up_to_date);
  EXPECT_EQ(findings(), std::set<std::string>{std::string(kDrift)});
  expect_action_after(600);
  EXPECT_EQ(actions(), kRestarted);
  EXPECT_TRUE(fleet_->settle());
  EXPECT_EQ(phase(), Phase::up_to_date);
  EXPECT_EQ(findings(), std::set<std::string>{});
  EXPECT_EQ(fleet_->label_of(kName, kGpuReplicas), "4");
  EXPECT_EQ(fleet_->restarts(kName, "plugin"), 1);
  EXPECT_EQ(fleet_->restarts("n02", "plugin"), 0);
}

// A restart into what the node has loaded already needs no approval. Every other stop ends its wait for workloads.
TEST_F(NodeWithoutChange, C3_ARepairThatOnlyWaitsKeepsItsCordonWithoutAnApprovalAndLeavesItsChangeByOtherStops) {
  struct Row {
    const char* spec;
    Actions actions;
  };
  const Row rows[] = {{"{mode: Approve}", {}},
                      {"{rollout: {paused: true}}", {"Paused"}},
                      {"{mode: Observe}", {"Observe"}},
                      {"{rollout: {maintenanceWindows: [{cron: \"0 0 29 2 *\", duration: 1h}]}}", {"OutsideWindow"}}};
  for (const Row& row : rows) {
    fleet().edit("any", "mps-4");
    ASSERT_TRUE(fleet_->settle());
    fleet_->edit("any", "mps-8");
    fleet_->reboot(kName);
    fleet_->edit("any", "mps-4");
    fleet_->use(kName, "job", "nvidia.com/gpu", 1);
    EXPECT_EQ(phase(), Phase::up_to_date) << row.spec;
    EXPECT_NE(until(900, [this] { return phase() == Phase::draining; }), -1) << row.spec;
    EXPECT_TRUE(fleet_->node(kName).unschedulable) << row.spec;
    fleet_->policy(policy("default", row.spec));
    EXPECT_EQ(actions(), row.actions) << row.spec;
  }
}

TEST_F(NodeWithoutChange, N7_MissingDevicesAreReportedAndNotRepaired) {
  fleet().break_device(kName, 1);
  fleet_->advance(2s);
  ASSERT_EQ(fleet_->allocatable(kName, kGpuResource), 4) << "one GPU of two";
  EXPECT_EQ(phase(), Phase::up_to_date);
  EXPECT_EQ(findings(), std::set<std::string>{std::string(kUnhealthyDevices)});
  EXPECT_EQ(until_action(1200), -1);
  EXPECT_EQ(findings(), std::set<std::string>{std::string(kUnhealthyDevices)});
}

TEST_F(NodeWithoutChange, N8_ANodeThatNeedsAChangeIsPendingUntilItStarts) {
  fleet().edit("any", "ts-8");
  EXPECT_EQ(phase(), Phase::pending);
  EXPECT_EQ(actions(), Actions{}) << "the edit has not settled";
  EXPECT_NE(until_action(300), -1);
}

TEST_F(NodeWithoutChange, N8_UnderOnDeleteANewTemplateNeedsAChange) {
  FleetSpec spec;
  spec.on_delete = true;
  fleet(spec).roll_templates("any");
  EXPECT_EQ(phase(), Phase::pending);
  EXPECT_EQ(cause(), ChangeCause::new_template);
  EXPECT_NE(until_action(300), -1);
  EXPECT_EQ(actions(), kRestarted);
  EXPECT_TRUE(fleet_->settle());
  EXPECT_EQ(phase(), Phase::up_to_date);
  for (const char* node : {kName, "n02"})
    for (const char* component : {"plugin", "gfd"}) EXPECT_EQ(fleet_->restarts(node, component), 1) << component;
}

TEST_F(NodeWithoutChange, N8_ANodeThatLeavesAPolicyThatRevertsGetsItsFormerLabelBack) {
  fleet().label(kName, "pool", "gold");
  fleet_->policy(policy(
      "gold", "{nodeSelector: {matchLabels: {pool: gold}}, deletionPolicy: Revert, profile: {configMapKey: other}}"));
  EXPECT_TRUE(fleet_->settle());
  ASSERT_EQ(fleet_->label_of(kName, kConfigLabel), "other");
  ASSERT_EQ(phase(), Phase::up_to_date);
  fleet_->label(kName, "pool", std::nullopt);
  EXPECT_EQ(phase(), Phase::pending);
  EXPECT_EQ(cause(), ChangeCause::policy);
  EXPECT_EQ(fleet_->index.assessment(kName)->left_policy, LeftPolicy::revert);
  EXPECT_TRUE(fleet_->settle());
  EXPECT_EQ(phase(), Phase::up_to_date);
  EXPECT_EQ(fleet_->label_of(kName, kConfigLabel), "");
  EXPECT_EQ(fleet_->label_of(kName, kGpuReplicas), "4");
}

TEST_F(NodeWithoutChange, N8_TheMigManagerHoldsItFromTheWishToTheReboot) {
  fleet().edit("any", "ts-8");
  for (const char* state : {"pending", "rebooting"}) {
    fleet_->label(kName, "nvidia.com/mig.config.state", state);
    EXPECT_EQ(phase(), Phase::held) << state;
    EXPECT_EQ(shown_reason(*fleet_->index.assessment(kName)), kMigChange) << state;
    EXPECT_EQ(until_action(600), -1) << state;
  }
  fleet_->label(kName, "nvidia.com/mig.config.state", "success");
  EXPECT_EQ(phase(), Phase::pending);
}

// A node whose plugin does not start with the text that it was changed to.
class FailedNode : public NodeWithoutChange {
 protected:
  FailedNode() {
    fleet({}, false).settings.rollout.verify_timeout = std::chrono::minutes(1);
    EXPECT_TRUE(fleet_->settle());
    fleet_->crash_pods(kName, true);
    fleet_->edit("any", "ts-8");
    EXPECT_NE(until(300, [&] { return phase() == Phase::failed; }), -1);
    EXPECT_EQ(until_action(60), -1);
  }

  [[nodiscard]] std::string change() const { return fleet_->annotation_of(kName, kChangeAnnotation); }
};

TEST_F(FailedNode, C2_ItStaysFailedWhileNobodyActs) {
  EXPECT_EQ(until_action(300), -1);
  EXPECT_EQ(phase(), Phase::failed);
}

TEST_F(FailedNode, C2_ANewTargetMakesItPendingAndItsNextChangeReplacesThisOne) {
  const std::string before = change();
  fleet_->edit("any", "ts-2");
  EXPECT_EQ(phase(), Phase::pending);
  EXPECT_EQ(change(), before) << "until then it keeps the change that has failed";
  EXPECT_NE(until_action(300), -1);
  EXPECT_EQ(actions(), kRestarted) << "every pod: it is not known what they have loaded";
  fleet_->crash_pods(kName, false);
  EXPECT_TRUE(fleet_->settle());
  EXPECT_EQ(phase(), Phase::up_to_date);
  EXPECT_EQ(change(), "");
}

TEST_F(FailedNode, C2_ARetryMakesItPendingAndTriesTheSameTargetAgain) {
  const std::string before = change();
  fleet_->policy(policy("default, annotations: {gpusharing.dev/retry: \"1\"}",
                        "{rollout: {maxUnavailable: 100%, verifyTimeout: 1m}}"));
  EXPECT_EQ(phase(), Phase::pending);
  EXPECT_EQ(change(), before);
  EXPECT_NE(until_action(300), -1);
  EXPECT_EQ(actions(), kRestarted);
  EXPECT_NE(until(300, [&] { return phase() == Phase::failed; }), -1) << "its pods crash still";
  EXPECT_EQ(until_action(300), -1) << "one retry is one attempt";
}

}  // namespace
}  // namespace gso::test::node_without_change_test
