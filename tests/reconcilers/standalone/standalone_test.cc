// Standalone MPS daemons: a new template of their DaemonSet is rolled node by node, clients first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "reconcilers/explain/audit.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/reasons/names.h"
#include "tests/reconcilers/standalone/standalone_fleet.h"

namespace gso::test::standalone_test {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

// What an audit reports of budgets that are full.
std::vector<std::string> full_budgets(FleetModel& fleet) {
  fleet.index.refresh(fleet.world, fleet.settings);
  std::vector<std::string> out;
  const Snapshot snapshot{fleet.world, fleet.now, fleet.timers, fleet.consumers, fleet.settings};
  for (const Finding& finding : audit(snapshot, fleet.index).findings)
    if (finding.why.code == kBudgetExhausted) out.push_back(finding.why.message);
  return out;
}

TEST_F(StandaloneMps, RollANewTemplateNodeByNodeAndLeaveNothingBehind) {
  begin(3);
  new_template("new");
  run(200s);
  EXPECT_EQ(on("new"), 3);
  EXPECT_EQ(most_in_change, 1);
  EXPECT_EQ(in_change(), 0);
  for (const char* node : {"n01", "n02", "n03"}) {
    EXPECT_FALSE(fleet->node(node).unschedulable) << node;
    EXPECT_EQ(mark(node), "") << node;
  }
  EXPECT_TRUE(fleet->plan().actions.empty());
}

TEST_F(StandaloneMps, ShowHowFarTheyAre) {
  begin_with_a_client(3);
  run(200s);
  const std::vector<DaemonProgress> shown = daemon_progress(fleet->world, fleet->index);
  ASSERT_EQ(shown.size(), 1U);
  EXPECT_EQ(shown[0].daemonset, "gpu-sharing-operator/gpu-sharing-operator-mps");
  EXPECT_EQ(shown[0].revision, "new");
  EXPECT_EQ(shown[0].total, 3);
  EXPECT_EQ(shown[0].updated, 2);
  EXPECT_EQ(shown[0].in_progress, std::vector<std::string>{"n01"});
  const RolloutKey rollout{"default", daemonset_subject(shown[0].daemonset), ""};
  using Phases = std::map<std::string, Phase>;
  EXPECT_EQ(daemon_phases(fleet->world, fleet->index.impl(), rollout), (Phases{{"n01", Phase::draining}}));
  fleet->cordon("n01", false);
  run(30s);
  EXPECT_FALSE(fleet->node("n01").unschedulable);
  EXPECT_THAT(mark("n01"), HasSubstr("deferredUntil"));
  EXPECT_EQ(hash_on("n01"), "old");
  EXPECT_EQ(daemon_progress(fleet->world, fleet->index)[0].deferred, std::vector<std::string>{"n01"});
  EXPECT_EQ(daemon_phases(fleet->world, fleet->index.impl(), rollout), (Phases{{"n01", Phase::pending}}));
  EXPECT_EQ(daemon_phases(fleet->world, fleet->index.impl(), {"another", rollout.config_map, ""}), Phases());
}

// Pods need minutes to become Ready, and one that has been away has proven nothing.
TEST_F(StandaloneMps, LetTheCanarySoakFromTheMomentAtWhichItServes) {
  begin(3);
  fleet->settings.rollout.canary_soak = 2min;
  broken = true;
  new_template("new");
  run(5min);
  ASSERT_EQ(on("new"), 1);
  broken = false;
  const std::string canary = hash_on("n01") == "new" ? "n01" : hash_on("n02") == "new" ? "n02" : "n03";
  set_ready(canary, true);
  run(100s);
  EXPECT_EQ(on("new"), 1);
  set_ready(canary, false);
  run(10s);
  set_ready(canary, true);
  run(100s);
  EXPECT_EQ(on("new"), 1);
  run(2min);
  EXPECT_EQ(on("new"), 3);
}

TEST_F(StandaloneMps, WaitForGpuClientsAndTakeIdleNodesFirst) {
  begin_with_a_client(2);
  run(200s);
  EXPECT_EQ(hash_on("n02"), "new");
  EXPECT_EQ(hash_on("n01"), "old");
  EXPECT_TRUE(fleet->node("n01").unschedulable);
  EXPECT_EQ(finding(kStandaloneMpsWaits),
            "n01: the standalone MPS daemon is replaced once jobs/trainer has ended: it would break with the daemon");
  fleet->release("n01");
  run(30s);
  EXPECT_EQ(hash_on("n01"), "new");
  EXPECT_FALSE(fleet->node("n01").unschedulable);
}

class StandaloneMpsUnderClockSteps : public StandaloneMps, public ::testing::WithParamInterface<std::chrono::hours> {};
INSTANTIATE_TEST_SUITE_P(Hours, StandaloneMpsUnderClockSteps, ::testing::Values(-1h, 0h, 1h));

TEST_P(StandaloneMpsUnderClockSteps, GiveANodeBackWhoseClientsStayAndTryAgainLater) {
  begin(1);
  fleet->settings.rollout.idle_timeout = 5min;
  use({"n01"});
  new_template("new");
  run(6min);
  EXPECT_FALSE(fleet->node("n01").unschedulable);
  EXPECT_THAT(mark("n01"), HasSubstr("deferredUntil"));
  fleet->step_wall_clock(GetParam());
  run(3min);
  EXPECT_FALSE(fleet->node("n01").unschedulable);
  run(2min);
  EXPECT_TRUE(fleet->node("n01").unschedulable);  // The next attempt.
  fleet->release("n01");
  run(30s);
  EXPECT_EQ(hash_on("n01"), "new");
  EXPECT_EQ(mark("n01"), "");
}

TEST_P(StandaloneMpsUnderClockSteps, SettleAndSoakAsLong) {
  begin(3);
  allow_all_at_once(3);
  fleet->settings.rollout.canary_soak = 5min;
  new_template("new");
  run(3s);
  fleet->step_wall_clock(GetParam());
  run(3s);
  EXPECT_EQ(in_change(), 0);
  run(30s);
  ASSERT_EQ(on("new"), 1);
  fleet->step_wall_clock(GetParam());
  run(4min);
  EXPECT_EQ(on("new"), 1);
  run(2min);
  EXPECT_EQ(on("new"), 3);
}

TEST_F(StandaloneMps, DoNotWaitUnderInterruptAndUnderEvict) {
  for (const WorkloadMode mode : {WorkloadMode::interrupt, WorkloadMode::evict}) {
    begin(1);
    interrupts = mode == WorkloadMode::interrupt;
    fleet->settings.rollout.workloads = mode;
    use({"n01"});
    new_template("new");
    run(60s);
    EXPECT_EQ(fleet->consumers["n01"].pods.empty(), !interrupts);
    EXPECT_EQ(hash_on("n01"), "new");
    EXPECT_EQ(mark("n01"), "");
  }
}

TEST_F(StandaloneMps, EvictNoClientWhileAnotherOneStaysAndSayWhy) {
  begin(1);
  fleet->settings.rollout.workloads = WorkloadMode::evict;
  use({"n01"});
  fleet->use_bare("n01", "notebook");
  new_template("new");
  run(60s);
  EXPECT_EQ(fleet->consumers["n01"].pods.size(), 2U);
  EXPECT_THAT(finding(kStandaloneMpsWaits),
              HasSubstr("jobs/notebook has no controller that would create it again after an eviction"));
  EXPECT_THAT(finding(kStandaloneMpsWaits), HasSubstr("Until then no other pod of the node is evicted"));
  fleet->settings.rollout.evict_bare_pods = true;
  run(60s);
  EXPECT_EQ(hash_on("n01"), "new");
}

TEST_F(StandaloneMps, NameTheDisruptionBudgetThatKeepsAClient) {
  begin(1);
  fleet->settings.rollout.workloads = WorkloadMode::evict;
  use({"n01"});
  fleet->protect("trainer", "the budget trainers needs 1");
  new_template("new");
  run(60s);
  EXPECT_EQ(hash_on("n01"), "old");
  EXPECT_THAT(finding(kStandaloneMpsWaits),
              HasSubstr("a PodDisruptionBudget prevents the eviction of jobs/trainer: the budget trainers needs 1"));
}

TEST_F(StandaloneMps, EvictThePodsOfOneJobTogetherOrNotAtAll) {
  begin(2);
  fleet->settings.rollout.workloads = WorkloadMode::evict;
  fleet->use_by_job("n01", "train-0", "train", {});
  fleet->use_by_job("n02", "train-1", "train", {});
  new_template("new");
  run(60s);
  EXPECT_EQ(in_change(), 1);
  EXPECT_EQ(fleet->consumers["n01"].pods.size() + fleet->consumers["n02"].pods.size(), 2U);
  EXPECT_THAT(finding(kJobSpansNodes), HasSubstr("also runs on n0"));
  allow_all_at_once(2);
  fleet->settings.rollout.canary_nodes_per_group = 2;
  run(60s);
  EXPECT_EQ(on("new"), 2);
}

TEST_F(StandaloneMps, LeaveNodesOfEachProductInService) {
  products = {{"n03", "Tesla-T4"}, {"n04", "Tesla-T4"}};
  begin(4);
  fleet->settings.cluster_max_unavailable = fleet->settings.rollout.max_unavailable = {100, true};
  fleet->settings.rollout.max_unavailable_per_group = {1, false};
  fleet->settings.rollout.canary_nodes_per_group = 4;
  use({"n01", "n02", "n03", "n04"});
  new_template("new");
  run(60s);
  EXPECT_EQ(in_change(), 2);
  EXPECT_NE(fleet->node("n01").unschedulable, fleet->node("n02").unschedulable);
  EXPECT_NE(fleet->node("n03").unschedulable, fleet->node("n04").unschedulable);
}

// n01 has the daemon and no device plugin: it uses the slots of its policy all the same.
TEST_F(StandaloneMps, UseTheSlotsOfChangesOfProfilesAlsoWithoutAPlugin) {
  begin(3);
  for (const char* component : {"device-plugin", "gpu-feature-discovery", "mps-control-daemon"})
    fleet->label("n01", std::string("nvidia.com/gpu.deploy.") + component, std::nullopt);
  fleet->settings.cluster_max_unavailable = {3, false};
  fleet->settings.rollout.max_unavailable = {1, false};
  use({"n01"});
  new_template("new");
  run(200s);
  ASSERT_EQ(fleet->index.assessment("n01"), nullptr);
  ASSERT_NE(mark("n01"), "");
  ASSERT_EQ(on("new"), 2);
  fleet->edit("any", "ts-4");
  run(200s);
  for (const char* node : {"n02", "n03"}) EXPECT_EQ(fleet->restarts(node, "plugin"), 0) << node;
  EXPECT_THAT(full_budgets(*fleet), ElementsAre()) << "the operator's own change of n01 ends by itself";
  fleet->set_ready("n02", false);
  EXPECT_THAT(full_budgets(*fleet), ElementsAre(EndsWith("out of service: n02 (NotReady). In change by the operator, "
                                                         "which ends by itself: n01")));
  fleet->set_ready("n02", true);
  fleet->release("n01");
  run(400s);
  for (const char* node : {"n02", "n03"}) EXPECT_EQ(fleet->restarts(node, "plugin"), 1) << node;
}

// The API server can do it at any time, although it has not answered.
TEST_F(StandaloneMps, HoldASlotOnceTheirChangeIsHandedOver) {
  begin(2);
  new_template("new");
  std::string first;
  for (int second = 0; second < 100 && first.empty(); ++second) {
    const Plan plan = fleet->plan();
    for (const PlannedAction& planned : plan.actions) {
      const auto* patch = std::get_if<PatchNode>(&planned.action);
      if (patch == nullptr || !patch->set_annotations.contains(std::string(kMpsDaemonChangeAnnotation))) continue;
      first = patch->name;
      fleet->world.nodes_being_written[first] = std::make_shared<const PatchNode>(*patch);
      EXPECT_TRUE(writes_change(*patch));
      fleet->index.note_node_changed(first);
    }
    if (!first.empty()) break;
    fleet->apply(plan);
    fleet->advance(1s);
  }
  ASSERT_NE(first, "");
  run(60s);
  EXPECT_EQ(in_change(), 0);
  EXPECT_EQ(on("new"), 0);
  fleet->world.nodes_being_written.erase(first);  // It was refused.
  fleet->index.note_node_changed(first);
  run(200s);
  EXPECT_EQ(on("new"), 2);
}

// Slots are free, and the canary has passed: what keeps the third node in service is the failure alone.
TEST_F(StandaloneMps, StopOnceTooManyDoNotStartAfterTheCanaryAsWell) {
  begin(3);
  allow_all_at_once(3);
  fleet->settings.rollout.max_failures = 1;
  fleet->settings.rollout.canary_soak = 0s;
  fleet->settings.rollout.verify_timeout = 5min;
  fleet->annotate("n02", kHoldAnnotation, "true");
  fleet->annotate("n03", kHoldAnnotation, "true");
  new_template("new");
  run(60s);
  ASSERT_EQ(hash_on("n01"), "new");
  broken = true;
  fleet->annotate("n02", kHoldAnnotation, std::nullopt);
  run(6min);
  ASSERT_EQ(hash_on("n02"), "new");
  ASSERT_NE(finding(kStandaloneMpsFailed), "");
  fleet->annotate("n03", kHoldAnnotation, std::nullopt);
  run(60s);
  EXPECT_EQ(hash_on("n03"), "old");
  EXPECT_FALSE(fleet->node("n03").unschedulable);
}

TEST_F(StandaloneMps, FollowTheModeOfThePolicy) {
  begin(2);
  fleet->settings.mode = PolicyMode::approve;
  new_template("new");
  run(60s);
  EXPECT_EQ(on("new"), 0);
  EXPECT_THAT(finding(kStandaloneMpsWaits), HasSubstr("gpusharing.dev/approved=new"));
  approved = "new";
  put_daemonset();
  run(200s);
  EXPECT_EQ(on("new"), 2);
  fleet->settings.mode = PolicyMode::observe;
  new_template("newer");
  run(100s);
  EXPECT_EQ(on("newer"), 0);
}

TEST_F(StandaloneMps, KeepOffANodeThatAPersonHoldsOrThatIsInAnotherChange) {
  begin(1);
  fleet->annotate("n01", kHoldAnnotation, "true");
  new_template("new");
  run(60s);
  EXPECT_EQ(hash_on("n01"), "old");
  fleet->annotate("n01", kHoldAnnotation, std::nullopt);
  run(60s);
  EXPECT_EQ(hash_on("n01"), "new");
}

// A rollout of a profile waits while the daemon is replaced, and the other way round.
TEST_F(StandaloneMps, TakeTurnsWithChangesOfProfiles) {
  begin_with_a_client();
  run(60s);
  ASSERT_EQ(in_change(), 1);
  fleet->edit("any", "ts-4");
  run(60s);
  EXPECT_EQ(fleet->annotation_of("n01", kChangeAnnotation), "");
  EXPECT_EQ(fleet->index.assessment("n01")->holder, kStandaloneMpsChange);
  fleet->release("n01");
  run(200s);
  EXPECT_EQ(hash_on("n01"), "new");
  EXPECT_EQ(fleet->allocatable("n01", kGpuResource), 8);
}

TEST_F(StandaloneMps, ThatOnlyWatchTheHostAreReplacedWithoutADrain) {
  begin(3, "observe");
  interrupts = true;
  use({"n01"});
  new_template("new");
  run(60s);
  EXPECT_EQ(on("new"), 3);
  EXPECT_EQ(most_in_change, 0);
}

TEST_F(StandaloneMps, ThatOnlyWatchTheHostAreReplacedOneByOneAndNotAfterOneThatIsNotReady) {
  begin(3, "observe");
  broken = true;
  new_template("new");
  run(60s);
  EXPECT_EQ(on("new"), 1);
  broken = false;
  new_template("newer");  // The image is corrected.
  run(60s);
  EXPECT_EQ(on("newer"), 3);
}

TEST_F(StandaloneMps, BlockAProfileThatWouldStartASecondDaemon) {
  begin(1);
  fleet->edit("any", "mps-4");
  run(60s);
  const NodeAssessment& a = *fleet->index.assessment("n01");
  EXPECT_EQ(a.obstacle.code, kStandaloneMpsConflict);
  EXPECT_NE(a.obstacle.message.find("DaemonSet gpu-sharing-operator/gpu-sharing-operator-mps is for the node as well"),
            std::string::npos)
      << a.obstacle.message;
  EXPECT_TRUE(fleet->pods("n01", "mps").empty());
}

TEST_F(StandaloneMps, HoldANodeWhoseMarkCannotBeRead) {
  begin(1);
  fleet->annotate("n01", kMpsDaemonChangeAnnotation, "{");
  new_template("new");
  run(60s);
  EXPECT_EQ(hash_on("n01"), "old");
  EXPECT_THAT(finding(kChangeUnreadable), HasSubstr("must be a JSON object"));
}

TEST(MpsDaemonChangeText, IsReadAsItWasWritten) {
  MpsDaemonChange change{"gso/mps", "abc", k8s::WallTime(std::chrono::hours(500000)), true, std::nullopt, false, ""};
  EXPECT_EQ(print_mps_daemon_change(change),
            R"({"v":1,"daemonSet":"gso/mps","to":"abc","begun":"2027-01-15T08:00:00Z","cordoned":true})");
  change.failed = true;
  change.retry = "2027-01-15T08:00:00Z";
  const auto read = parse_mps_daemon_change(print_mps_daemon_change(change));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, change);
  for (const char* wrong : {"", "[]", R"({"v":2})", R"({"v":1,"daemonSet":"a/b","to":"c"})",
                            R"({"v":1,"daemonSet":"a/b","to":"c","begun":"now"})",
                            R"({"v":1,"daemonSet":"a/b","to":"c","begun":"2027-01-15T08:00:00Z","cordoned":1})"}) {
    EXPECT_FALSE(parse_mps_daemon_change(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace gso::test::standalone_test
