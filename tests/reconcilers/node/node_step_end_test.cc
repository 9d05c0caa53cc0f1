// Rows C8 to C12 of node_step.h: a node whose pods are being replaced, until its change ends.
#include <gtest/gtest.h>

#include "reconcilers/model/labels.h"
#include "tests/reconcilers/node/node_step_fixture.h"

namespace gso::node_step_end_test {
namespace {

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
  EXPECT_EQ(reasons(take()), (std::vector<std::string>{"NodesNotReady", "MPSUncleanExit"}));
  pod("old-mps").meta.deletion_timestamp.reset();
  EXPECT_EQ(reasons(take()), std::vector<std::string>{"NodesNotReady"}) << "the daemon runs until its kubelet is back";
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

TEST_F(DisruptiveStep, C9_ANodeThatIsNotReadyKeepsThePluginAndDoesNotFail) {
  remove("old-mps");
  remove("old-gfd");
  add_pod("new-gfd", Component::gfd, now - seconds(5));
  add_pod("new-mps", Component::mps, now - seconds(5));
  node.ready = facts.ready = false;
  ran_for(Timer::verifying, minutes(10));
  EXPECT_EQ(actions(take()), Actions{});
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
  EXPECT_NE(taken.plan.actions.front().why.message.find("the old MPS control daemon is still running"),
            std::string::npos);
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

TEST_F(NodeStep, C11_OfPodsThatReadATextInBetweenOnlyTheOlderOnesAreListedAgain) {
  replace_all();
  shows_something_else();
  text_was_written(now - seconds(10));
  pod("new-gfd").meta.creation_timestamp = now - seconds(3);
  ran_for(Timer::verifying, minutes(10));
  ran_for(Timer::unchanged, seconds(10));
  const Step taken = take();
  ASSERT_EQ(actions(taken), Actions{"into(ReplaceAgain)"});
  const PatchNode& patch = std::get<PatchNode>(taken.plan.actions[0].action);
  const auto listed = parse_change(patch.set_annotations.at(std::string(kChangeAnnotation)))->pods;
  EXPECT_EQ(listed.at(Component::gfd), std::set<std::string>{});
  EXPECT_EQ(listed.at(Component::plugin), std::set<std::string>{"new-plugin"});
}

TEST_F(NodeStep, C11_ANodeWithMoreDevicesThanRecordedIsVerified) {
  replace_all();
  shows_something_else();
  facts.verified.surplus = true;
  facts.measured_gpus = 4;
  ran_for(Timer::verifying, minutes(10));
  EXPECT_EQ(actions(take()), Actions{"out(Verified)"});
}

TEST_F(NodeStep, C11_ANodeThatIsNotReadyProvesNothing) {
  replace_all();
  shows_target();
  node.ready = facts.ready = false;
  ran_for(Timer::verifying, minutes(60));
  const Step taken = take();
  EXPECT_EQ(actions(taken), Actions{});
  EXPECT_EQ(reasons(taken), std::vector<std::string>{"NodesNotReady"});
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
  change.touched = Touched::yes;
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
}  // namespace gso::node_step_end_test
