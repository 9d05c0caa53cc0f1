// Rows C7 to C12 of node_step.h: a node whose pods are being replaced, until its change ends.
#include <gtest/gtest.h>

#include "tests/reconcilers/node/node_step_fixture.h"

namespace gso {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

TEST_F(DisruptiveStep, C8_FirstPodsThatStillTerminateAreWaitedForUntilTheTimeIsOver) {
  for (const char* uid : {"old-mps", "old-gfd"}) pod(uid).meta.deletion_timestamp = now - seconds(5);
  const Step taken = take();
  EXPECT_EQ(actions(taken), Actions{});
  EXPECT_EQ(taken.row, StepRow::c8);
  ran_for(Timer::verifying, minutes(10));
  EXPECT_EQ(actions(take()), (Actions{"into(VerificationFailed)", "event VerificationFailed"}));
}

TEST_F(DisruptiveStep, C8_TheChangeGoesOnOnceTheLastOfTheFirstPodsIsGone) {
  remove("old-gfd");
  add_pod("new-gfd", Component::gfd, now - seconds(5));
  pod("old-mps").meta.deletion_timestamp = now - seconds(5);
  add_pod("new-mps", Component::mps, now - seconds(5));
  EXPECT_EQ(actions(take()), Actions{}) << "two daemons on one node";
  remove("old-mps");
  EXPECT_EQ(actions(take()), Actions{"delete old-plugin"});
}

// How the daemon ended is not known: its node is lost.
TEST_F(DisruptiveStep, C8_ANodeThatIsLostWhileItsDaemonTerminatesIsReported) {
  pod("old-mps").meta.deletion_timestamp = now - seconds(5);
  EXPECT_EQ(reasons(take()), std::vector<std::string>{}) << "its kubelet ends the daemon";
  node.ready = facts.ready = false;
  EXPECT_EQ(reasons(take()), std::vector<std::string>{"MPSUncleanExit"});
  pod("old-mps").meta.deletion_timestamp.reset();
  EXPECT_EQ(reasons(take()), std::vector<std::string>{}) << "the daemon runs until its kubelet is back";
}

TEST_F(DisruptiveStep, C9_ThePluginGoesLastOnceTheNewDaemonIsReady) {
  remove("old-mps");
  remove("old-gfd");
  add_pod("new-gfd", Component::gfd, now - seconds(5));
  const Step taken = take();
  EXPECT_EQ(actions(taken), Actions{}) << "the daemon is missing";
  EXPECT_EQ(taken.row, StepRow::c9);
  EXPECT_EQ(taken.last_wait_for, "the new MPS control daemon is not Ready");
  Pod& daemon = add_pod("new-mps", Component::mps, now - seconds(5));
  daemon.meta.deletion_timestamp = now;
  EXPECT_EQ(actions(take()), Actions{}) << "it is terminating, although still Ready";
  daemon.meta.deletion_timestamp.reset();
  daemon.containers.emplace_back().waiting_reason = Interned("CrashLoopBackOff");
  EXPECT_EQ(actions(take()), Actions{}) << "one of its containers crashes, although its condition still says Ready";
  daemon.containers.clear();
  EXPECT_EQ(actions(take()), Actions{"delete old-plugin"});
}

TEST_F(DisruptiveStep, C9_ADaemonThatNeverComesFailsTheNode) {
  remove("old-mps");
  remove("old-gfd");
  add_pod("new-gfd", Component::gfd, now - seconds(5));
  ran_for(Timer::verifying, minutes(10));
  const Step taken = take();
  EXPECT_EQ(actions(taken), (Actions{"into(VerificationFailed)", "event VerificationFailed"}));
}

TEST_F(DisruptiveStep, C9_ANodeThatIsNotReadyKeepsThePluginAndFailsWhenItsTimeIsOver) {
  remove("old-mps");
  remove("old-gfd");
  add_pod("new-gfd", Component::gfd, now - seconds(5));
  add_pod("new-mps", Component::mps, now - seconds(5));
  node.ready = facts.ready = false;
  EXPECT_EQ(actions(take()), Actions{});
  ran_for(Timer::verifying, minutes(10));
  EXPECT_EQ(actions(take()), (Actions{"into(VerificationFailed)", "event VerificationFailed"}));
}

// The same node on its way from MPS to time-slicing: its new GFD pod has taken the daemon's label away.
class LeavingMps : public DisruptiveStep {
 protected:
  LeavingMps() {
    aim_at(kFour);
    change.to = std::string(facts.target.view());
    change.kind = Transition::leave_mps;
    remove("old-gfd");
    add_pod("new-gfd", Component::gfd, now - seconds(5));
  }
};

TEST_F(LeavingMps, C9_ThePluginWaitsUntilTheOldDaemonIsGone) {
  EXPECT_EQ(actions(take()), Actions{}) << "the daemon runs";
  pod("old-mps").meta.deletion_timestamp = now - seconds(5);
  EXPECT_EQ(actions(take()), Actions{}) << "it is terminating, and holds the GPUs until it has ended";
  remove("old-mps");
  EXPECT_EQ(actions(take()), Actions{"delete old-plugin"});
}

TEST_F(LeavingMps, C9_ADaemonThatStaysFailsTheNode) {
  ran_for(Timer::verifying, minutes(10));
  const Step taken = take();
  ASSERT_EQ(actions(taken), (Actions{"into(VerificationFailed)", "event VerificationFailed"}));
  EXPECT_NE(taken.plan.actions.front().message.find("the old MPS control daemon is still running"), std::string::npos);
}

// A node whose pods are all replaced and have read the text before the last edit.
class SupersededStep : public NodeStep {
 protected:
  SupersededStep() {
    replace_all();
    shows_something_else();
    change.to = "v1-other";
    text_was_written(now - seconds(10));
  }
};

TEST_F(SupersededStep, C7_NewPodsThatAreOlderThanTheTextAreListed) {
  EXPECT_EQ(actions(take()), Actions{"into(Superseded)"});
}

TEST_F(SupersededStep, C7_NotWithinOneSecondOfTheEdit) {
  retargeted = std::chrono::milliseconds(900);
  const Step taken = take();
  EXPECT_EQ(actions(taken), Actions{});
  EXPECT_EQ(taken.row, StepRow::c7);
}

TEST_F(SupersededStep, C7_NotWhileKaiMayUseTheNode) {
  kai = KaiHindrance{false, "KAI's reservation pods are not listed yet"};
  const Step taken = take();
  EXPECT_EQ(actions(taken), Actions{});
  EXPECT_EQ(reasons(taken), Actions{"KAIReservations"});
}

// The text became one that needs an idle node, and a Job runs there.
TEST_F(SupersededStep, C7_NotWhileItWouldWaitForWorkloads) {
  aim_at(kMpsFour);
  const Step unlisted = take();
  EXPECT_EQ(actions(unlisted), Actions{}) << "its consumers are not listed yet";
  EXPECT_EQ(unlisted.plan.consumers_wanted, std::set<std::string>{"n1"});
  list_consumers({"train-0"});
  const Step taken = take();
  EXPECT_EQ(taken.row, StepRow::c7);
  EXPECT_EQ(actions(taken), Actions{});
  ASSERT_EQ(reasons(taken), Actions{"WaitingForWorkloads"});
  EXPECT_NE(taken.plan.findings.front().message.find("team/train-0"), std::string::npos);
}

// Its plugin serves and its GFD does not come up: further Jobs could start there.
TEST_F(SupersededStep, C7_BesideWorkloadsItIsListedIfOnlyItsPluginServesForLong) {
  aim_at(kMpsFour);
  list_consumers({"train-0"});
  pod("new-gfd").ready = false;
  ran_for(Timer::verifying, minutes(9));
  EXPECT_EQ(actions(take()), Actions{});
  ran_for(Timer::verifying, minutes(10));
  EXPECT_EQ(actions(take()), Actions{"into(Superseded) cordon"});
  pod("new-plugin").ready = false;
  EXPECT_EQ(actions(take()), Actions{}) << "no workload can come to it";
}

// The label of the former key has just been written, and the policy names another key, which needs an idle node.
TEST_F(SupersededStep, C5_BesideWorkloadsANodeWhoseKeyMovesAgainLeavesOnceItHasShownTheFormer) {
  aim_at(kMpsFour);
  change.pods = {};
  change.touched = true;
  facts.label = Interned("mps");
  list_consumers({"train-0"});
  const Step waits = take();
  EXPECT_EQ(waits.row, StepRow::c5);
  EXPECT_EQ(actions(waits), Actions{}) << "its sidecars reload";
  node.allocatable[Interned("nvidia.com/gpu")] = node.capacity[Interned("nvidia.com/gpu")] = 8;
  const Step taken = take();
  ASSERT_EQ(actions(taken), Actions{"out(Unproven)"}) << "nothing has the text of v1-other any more";
  const auto& patch = std::get<PatchNode>(taken.plan.actions.front().action);
  EXPECT_EQ(patch.set_annotations.at(std::string(kRevisionAnnotation)), kInvalidRevision);
  consumers.clear();
  list_consumers({});
  EXPECT_EQ(actions(take()), Actions{"into(Superseded) cordon"});
}

TEST_F(SupersededStep, C7_BesideWorkloadsItLeavesOnceItHasShownWhatItRead) {
  aim_at(kMpsFour);
  list_consumers({"train-0"});
  facts.pods_ready = false;  // The daemon that the new text needs is not there.
  node.allocatable[Interned("nvidia.com/gpu")] = node.capacity[Interned("nvidia.com/gpu")] = 8;
  settings.status_lag = seconds(10);
  EXPECT_EQ(actions(take()), Actions{}) << "for less than the status lag";
  ran_for(Timer::shown, settings.status_lag);
  const Step taken = take();
  ASSERT_EQ(actions(taken), Actions{"out(Unproven)"}) << "nothing has the text of v1-other any more";
  const auto& patch = std::get<PatchNode>(taken.plan.actions.front().action);
  EXPECT_EQ(patch.set_annotations.at(std::string(kRevisionAnnotation)), kInvalidRevision) << "not the text of the edit";
  pod("new-gfd").ready = false;
  EXPECT_EQ(actions(take()), Actions{}) << "not while a pod is not Ready";
}

// Its pods serve, and need not have read that text. The one that its key has now is invalid.
TEST_F(SupersededStep, C10_ANodeWhoseTextNothingHasAnyMoreLeavesUnproven) {
  facts.profile =
      profiles.compile("version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 1}]}}\n");
  ASSERT_FALSE(facts.profile->valid);
  facts.target = Interned(kInvalidRevision);
  EXPECT_EQ(actions(take()), Actions{}) << "it serves no GPU";
  node.allocatable[Interned("nvidia.com/gpu")] = node.capacity[Interned("nvidia.com/gpu")] = 8;
  const Step taken = take();
  EXPECT_EQ(taken.row, StepRow::c10);
  ASSERT_EQ(actions(taken), Actions{"out(Unproven)"});
  const auto& patch = std::get<PatchNode>(taken.plan.actions.front().action);
  EXPECT_EQ(patch.set_annotations.at(std::string(kRevisionAnnotation)), kInvalidRevision);
}

TEST_F(SupersededStep, C7_AtOnceWhereNoWorkloadIsLeftOrNobodyWaitsForIt) {
  aim_at(kMpsFour);
  list_consumers({});
  EXPECT_EQ(actions(take()), Actions{"into(Superseded) cordon"});
  list_consumers({"train-0"});
  for (const WorkloadMode mode : {WorkloadMode::evict, WorkloadMode::interrupt}) {
    policy.rollout.workloads = mode;
    EXPECT_EQ(actions(take()), Actions{"into(Superseded) cordon"}) << static_cast<int>(mode);
  }
}

TEST_F(SupersededStep, C7_NotWhileTheNodeIsNotReady) {
  node.ready = facts.ready = false;
  EXPECT_EQ(actions(take()), Actions{});
}

TEST_F(SupersededStep, C7_ATaintThatKeepsTheNewPodsAwayIsReported) {
  facts.taint = Interned("maintenance=true:NoSchedule, which DaemonSet a/b does not tolerate");
  facts.pods_ready = facts.fresh_pods = false;
  change.to = std::string(facts.target.view());
  const Step taken = take();
  EXPECT_EQ(actions(taken), Actions{});
  ASSERT_EQ(reasons(taken), Actions{"TaintNotTolerated"});
  EXPECT_NE(taken.plan.findings.front().message.find("maintenance=true:NoSchedule"), std::string::npos);
}

// OnDelete: the new pods are of a template that was taken back since.
class TakenBackTemplate : public NodeStep {
 protected:
  TakenBackTemplate() {
    for (Operand& operand : installation.operands) {
      operand.on_delete = true;
      operand.newest_hash = "h1";
    }
    for (const char* uid : {"old-plugin", "old-gfd"}) has_template(uid, "h1");
    change.cause = ChangeCause::new_template;
  }
  void has_template(const std::string& uid, std::string_view hash) {
    pod(uid).meta.labels.set(kRevisionHashLabel, hash);
  }
  void replace_all_from(std::string_view hash) {
    replace_all();
    for (const char* uid : {"new-plugin", "new-gfd"}) has_template(uid, hash);
    shows_something_else();
  }
};

TEST_F(TakenBackTemplate, C7_NewPodsThatAreNotReadyAreListedForTheNewestOne) {
  replace_all_from("h2");
  facts.pods_ready = false;
  const Step taken = take();
  EXPECT_EQ(taken.row, StepRow::c7);
  ASSERT_EQ(actions(taken), Actions{"into(Superseded)"});
  const auto& patch = std::get<PatchNode>(taken.plan.actions.front().action);
  const auto written = parse_change(patch.set_annotations.at(std::string(kChangeAnnotation)));
  ASSERT_TRUE(written);
  EXPECT_EQ(written->cause, ChangeCause::new_template);
  EXPECT_EQ(written->pods.at(Component::plugin), std::set<std::string>{"new-plugin"});
}

TEST_F(TakenBackTemplate, C7_NewPodsOfTheNewestTemplateAreWaitedFor) {
  replace_all_from("h1");
  facts.pods_ready = false;
  EXPECT_EQ(actions(take()), Actions{});
}

TEST_F(TakenBackTemplate, C7_APodThatTheChangeDidNotCreateIsNoReason) {
  replace_all_from("h1");
  add_pod("old-mps", Component::mps, now - hours(2));
  has_template("old-mps", "h0");
  facts.pods_ready = false;
  EXPECT_EQ(actions(take()), Actions{});
}

TEST_F(TakenBackTemplate, C5_ListedPodsAreListedAgainWithTheNewOnes) {
  remove("old-gfd");
  add_pod("new-gfd", Component::gfd, now - seconds(5));
  has_template("new-gfd", "h2");
  facts.pods_ready = false;
  const Step taken = take();
  EXPECT_EQ(taken.row, StepRow::c5);
  EXPECT_EQ(actions(taken), Actions{"into(Superseded)"});
}

// Somebody moves the label of a node to another key while its new pods come up: what its labels show can be the former
// text of that key.
TEST_F(SupersededStep, C10_LabelsProveNothingOnceTheNodeHasAnotherKey) {
  change.to = profiles.compile(kMpsFour)->revision;
  facts.verified.ok = true;
  EXPECT_EQ(actions(take()), Actions{"out(Verified)"}) << "the key is the one of the change";
  facts.key = Interned("other");
  const Step taken = take();
  EXPECT_EQ(taken.row, StepRow::c7);
  EXPECT_EQ(actions(taken), Actions{"into(Superseded)"});
}

TEST_F(NodeStep, C10_PodsThatTheKubeletRejectedAreListedOnceBeforeTheEnd) {
  replace_all();
  shows_target();
  settings.remove_rejected_pods = {"UnexpectedAdmissionError"};
  const Step taken = take();
  EXPECT_EQ(taken.row, StepRow::c10);
  EXPECT_EQ(actions(taken), Actions{});
  EXPECT_TRUE(taken.plan.consumers_wanted.contains("n1"));
  list_consumers({});
  EXPECT_EQ(actions(take()), Actions{"out(Verified)"});
}

TEST_F(NodeStep, C10_ANodeThatShowsItIsVerifiedAfterTheStatusLag) {
  replace_all();
  shows_target();
  settings.status_lag = seconds(12);
  EXPECT_EQ(actions(take()), Actions{}) << "at the first glance";
  ran_for(Timer::shown, seconds(12));
  const Step taken = take();
  EXPECT_EQ(phase_of(facts), Phase::verifying);
  EXPECT_EQ(taken.row, StepRow::c10);
  EXPECT_EQ(actions(taken), Actions{"out(Verified)"});
  EXPECT_TRUE(taken.done);
}

// GFD counts the two GPUs of one model; the machine has had three. Its pods have read the text before the last edit and
// show it on all three: that is no surplus, and no reason to restart.
TEST_F(NodeStep, C10_ASupersededNodeOfTwoModelsIsHeldAgainstTheGpusInTheRecord) {
  replace_all();
  aim_at("version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 8}\n");
  facts.labeller = Labeller::us;
  facts.recorded_gpus = 3;
  facts.pods_ready = true;
  facts.verified.mismatch = "nvidia.com/gpu: capacity 12, expected 24";
  node.meta.labels.set("nvidia.com/gpu.count", "2");
  node.capacity[Interned("nvidia.com/gpu")] = node.allocatable[Interned("nvidia.com/gpu")] = 12;
  const Step taken = take();
  EXPECT_EQ(actions(taken), Actions{"out(Verified)"});
  EXPECT_EQ(reasons(taken), Actions{});
  const auto& patch = std::get<PatchNode>(taken.plan.actions.front().action);
  EXPECT_EQ(patch.set_annotations.at(std::string(kRevisionAnnotation)), change.to) << "what its pods have read";
}

TEST_F(NodeStep, C11_ANodeThatDoesNotShowItFailsWhenItsTimeIsOver) {
  replace_all();
  shows_something_else();
  const Step before = take();
  EXPECT_EQ(actions(before), Actions{});
  EXPECT_EQ(before.row, StepRow::none);
  ran_for(Timer::verifying, minutes(10));
  const Step taken = take();
  EXPECT_EQ(taken.row, StepRow::c11);
  ASSERT_EQ(actions(taken), (Actions{"into(VerificationFailed)", "event VerificationFailed"}));
  const auto& patch = std::get<PatchNode>(taken.plan.actions.front().action);
  EXPECT_TRUE(parse_change(patch.set_annotations.at(std::string(kChangeAnnotation)))->failed);
}

// An operator that has just been started: the new pods are older than verifyTimeout, and somebody held the node.
TEST_F(NodeStep, C11_AfterAHoldTheTimeStartsWhenItEnded) {
  replace_all();
  shows_something_else();
  for (Pod& each : pods) each.meta.creation_timestamp = now - minutes(30);
  change.listed = now - minutes(31);
  first_look = true;
  for (const auto& [ago, row] :
       std::vector<std::pair<minutes, StepRow>>{{minutes(5), StepRow::none}, {minutes(10), StepRow::c11}}) {
    released = now - ago;
    EXPECT_EQ(take().row, row) << ago.count();
  }
  released.reset();
  EXPECT_EQ(take().row, StepRow::c11);
}

TEST_F(NodeStep, C11_ANodeThatServesWithoutItsLabelsIsWaitedForAndReported) {
  replace_all();
  shows_something_else();
  facts.labels_missing = Interned("label nvidia.com/gpu.product is missing");
  ran_for(Timer::verifying, minutes(10));
  const Step taken = take();
  EXPECT_EQ(taken.row, StepRow::c11);
  EXPECT_EQ(actions(taken), Actions{});
  EXPECT_EQ(reasons(taken), Actions{"LabelsMissing"});
  facts.pods_ready = false;
  EXPECT_EQ(actions(take()), (Actions{"into(VerificationFailed)", "event VerificationFailed"}));
}

TEST_F(NodeStep, C11_ANodeWithFewerDevicesIsDegradedAndNotFailed) {
  replace_all();
  shows_something_else();
  facts.verified.shortfall = true;
  ran_for(Timer::verifying, minutes(10));
  const Step taken = take();
  EXPECT_EQ(actions(taken), Actions{"out(VerifiedDegraded)"});
  EXPECT_EQ(reasons(taken), Actions{"UnhealthyDevices"});
}

// The text was edited and edited back while the pods were replaced.
TEST_F(NodeStep, C11_PodsThatReadATextInBetweenAreListedAgain) {
  replace_all();
  shows_something_else();
  text_was_written(now - seconds(10));
  ran_for(Timer::verifying, minutes(10));
  ran_for(Timer::unchanged, seconds(10));
  EXPECT_EQ(actions(take()), Actions{"into(ReplaceAgain)"});
}

TEST_F(NodeStep, C11_ANodeWithMoreDevicesThanRecordedIsVerified) {
  replace_all();
  shows_something_else();
  facts.verified.surplus = true;
  facts.measured_gpus = 4;
  ran_for(Timer::verifying, minutes(10));
  EXPECT_EQ(actions(take()), Actions{"out(Verified)"});
}

TEST_F(NodeStep, C11_ANodeThatIsNotReadyFailsAndTheMessageSaysSo) {
  replace_all();
  shows_target();
  node.ready = facts.ready = false;
  ran_for(Timer::verifying, minutes(10));
  const Step taken = take();
  ASSERT_EQ(actions(taken), (Actions{"into(VerificationFailed)", "event VerificationFailed"}));
  EXPECT_NE(taken.plan.actions.front().message.find("the node is not Ready"), std::string::npos);
}

TEST_F(NodeStep, C11_AutoscalersMayRemoveAFailedNode) {
  replace_all();
  shows_something_else();
  change.guards = {"cluster-autoscaler"};
  node.meta.annotations.set("cluster-autoscaler.kubernetes.io/scale-down-disabled", "true");
  ran_for(Timer::verifying, minutes(10));
  const Step taken = take();
  const auto& patch = std::get<PatchNode>(taken.plan.actions.front().action);
  EXPECT_TRUE(patch.remove_annotations.contains("cluster-autoscaler.kubernetes.io/scale-down-disabled"));
}

TEST_F(NodeStep, C12_ALabelThatDidNotReloadWithinTwoMinutesListsThePods) {
  change.cause = ChangeCause::policy;
  change.pods.clear();
  change.touched = true;
  shows_something_else();
  EXPECT_EQ(actions(take()), Actions{});
  ran_for(Timer::reloading, minutes(2));
  const Step taken = take();
  EXPECT_EQ(actions(taken), Actions{"into(ReloadFailed)"});
  EXPECT_EQ(taken.row, StepRow::c12);
}

TEST_F(NodeStep, AStoredTimeCountsAtAFirstLookOnly) {
  replace_all();
  shows_something_else();
  for (Pod& p : pods) p.meta.creation_timestamp = now - minutes(11);
  change.listed = now - minutes(12);
  EXPECT_EQ(actions(take()), Actions{}) << "the clock counts from now on";
}

}  // namespace
}  // namespace gso
