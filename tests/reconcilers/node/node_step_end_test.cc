// Rows C8 to C12 of node_step.h: a node whose pods are being replaced, until its change ends.
#include <gtest/gtest.h>

#include "reconcilers/model/labels.h"
#include "tests/reconcilers/node/node_step_fixture.h"

namespace gso::node_step_end_test {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

const std::vector<std::string> kFailed = {"into(VerificationFailed)", "event VerificationFailed"};

TEST_F(DisruptiveStep, C8_FirstPodsThatStillTerminateAreWaitedForUntilTheTimeIsOver) {
  for (const char* uid : {"old-mps", "old-gfd"}) pod(uid).meta.deletion_timestamp = now - seconds(5);
  EXPECT_EQ(look(), "C8 Restarting");
  ran_for(Timer::verifying, minutes(10));
  EXPECT_EQ(act(), kFailed);
}

TEST_F(DisruptiveStep, C8_TheChangeGoesOnOnceTheLastOfTheFirstPodsIsGone) {
  remove("old-gfd");
  add_pod("new-gfd", Component::gfd, now - seconds(5));
  pod("old-mps").meta.deletion_timestamp = now - seconds(5);
  add_pod("new-mps", Component::mps, now - seconds(5));
  EXPECT_EQ(act(), Actions{}) << "two daemons on one node";
  remove("old-mps");
  EXPECT_EQ(act(), Actions{"delete old-plugin"});
}

// How the daemon ended is not known: its node is lost.
TEST_F(DisruptiveStep, C8_ANodeThatIsLostWhileItsDaemonTerminatesIsReported) {
  pod("old-mps").meta.deletion_timestamp = now - seconds(5);
  const auto reported = [&] { return take(), reasons(); };
  EXPECT_EQ(reported(), Actions{}) << "its kubelet ends the daemon";
  node.ready = facts.ready = false;
  EXPECT_EQ(reported(), (Actions{"NodesNotReady", "MPSUncleanExit"}));
  pod("old-mps").meta.deletion_timestamp.reset();
  EXPECT_EQ(reported(), Actions{"NodesNotReady"}) << "the daemon runs until its kubelet is back";
}

// The plugin is all that is left of the old pods.
class LastPod : public DisruptiveStep {
 protected:
  LastPod() {
    remove("old-mps");
    remove("old-gfd");
    add_pod("new-gfd", Component::gfd, now - seconds(5));
  }
};

TEST_F(LastPod, C9_ThePluginGoesOnceTheNewDaemonIsReady) {
  EXPECT_EQ(look(), "C9 Restarting") << "the daemon is missing";
  EXPECT_EQ(taken.last_wait_for, "the new MPS control daemon is not Ready");
  Pod& daemon = add_pod("new-mps", Component::mps, now - seconds(5));
  daemon.meta.deletion_timestamp = now;
  EXPECT_EQ(act(), Actions{}) << "it is terminating, although still Ready";
  daemon.meta.deletion_timestamp.reset();
  daemon.containers.emplace_back().waiting_reason = Interned("CrashLoopBackOff");
  EXPECT_EQ(act(), Actions{}) << "one of its containers crashes, although its condition still says Ready";
  daemon.containers.clear();
  EXPECT_EQ(act(), Actions{"delete old-plugin"});
}

TEST_F(LastPod, C9_ADaemonThatNeverComesFailsANodeThatIsReady) {
  ran_for(Timer::verifying, minutes(10));
  EXPECT_EQ(act(), kFailed);
  add_pod("new-mps", Component::mps, now - seconds(5));
  node.ready = facts.ready = false;
  EXPECT_EQ(act(), Actions{}) << "it keeps the plugin";
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
  EXPECT_EQ(act(), Actions{}) << "the daemon runs";
  pod("old-mps").meta.deletion_timestamp = now - seconds(5);
  EXPECT_EQ(act(), Actions{}) << "it is terminating, and holds the GPUs until it has ended";
  remove("old-mps");
  EXPECT_EQ(act(), Actions{"delete old-plugin"});
}

TEST_F(LeavingMps, C9_ADaemonThatStaysFailsTheNode) {
  ran_for(Timer::verifying, minutes(10));
  ASSERT_EQ(act(), kFailed);
  EXPECT_TRUE(taken.plan.actions.front().why.message.contains("the old MPS control daemon is still running"));
}

TEST_F(NodeStep, C10_PodsThatTheKubeletRejectedAreListedOnceBeforeTheEnd) {
  replace_all();
  shows_target();
  settings.remove_rejected_pods = {"UnexpectedAdmissionError"};
  EXPECT_EQ(look(), "C10 Verifying");
  EXPECT_TRUE(taken.plan.consumers_wanted.contains("n1"));
  list_consumers({});
  EXPECT_EQ(act(), Actions{"out(Verified)"});
}

TEST_F(NodeStep, C10_ANodeThatShowsItIsVerifiedAfterTheStatusLag) {
  replace_all();
  shows_target();
  settings.status_lag = seconds(12);
  EXPECT_EQ(act(), Actions{}) << "at the first glance";
  ran_for(Timer::shown, seconds(12));
  EXPECT_EQ(look(), "C10 Verifying: out(Verified)");
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
  serves(12);
  EXPECT_EQ(act(), Actions{"out(Verified)"});
  EXPECT_EQ(reasons(), Actions{});
  EXPECT_EQ(annotated(kRevisionAnnotation), change.to) << "what its pods have read";
}

// A node whose new pods do not show the target, and whose time is over.
class OverdueStep : public NodeStep {
 protected:
  OverdueStep() {
    replace_all();
    shows_something_else();
    ran_for(Timer::verifying, minutes(10));
  }
};

TEST_F(OverdueStep, C11_FailsAndNotBefore) {
  const auto overdue = std::exchange(ran, {});
  EXPECT_EQ(look(), "wait Verifying");
  ran = overdue;
  ASSERT_EQ(act(), kFailed);
  EXPECT_EQ(taken.row, StepRow::c11);
  EXPECT_TRUE(written().failed);
}

// An operator that has just been started: the new pods are older than verifyTimeout, and somebody held the node.
TEST_F(OverdueStep, C11_AfterAHoldTheTimeStartsWhenItEndedAndAStoredOneCountsAtAFirstLookOnly) {
  ran.clear();
  for (Pod& each : pods) each.meta.creation_timestamp = now - minutes(30);
  change.listed = now - minutes(31);
  EXPECT_EQ(look(), "wait Verifying") << "the clock counts from now on";
  timers.clear();
  first_look = true;
  released = now - minutes(5);
  EXPECT_EQ(look(), "wait Verifying");
  released = now - minutes(10);
  EXPECT_EQ(take().row, StepRow::c11);
  released.reset();
  EXPECT_EQ(take().row, StepRow::c11);
}

TEST_F(OverdueStep, C11_ThatServesWithoutItsLabelsIsWaitedForAndReported) {
  facts.labels_missing = Interned("label nvidia.com/gpu.product is missing");
  EXPECT_EQ(look(), "C11 Verifying; LabelsMissing");
  facts.pods_ready = false;
  EXPECT_EQ(act(), kFailed);
}

TEST_F(OverdueStep, C11_WithFewerDevicesIsDegradedAndNotFailed) {
  facts.verified.shortfall = true;
  EXPECT_EQ(look(), "C11 Verifying: out(VerifiedDegraded); UnhealthyDevices");
}

// The text was edited and edited back while the pods were replaced.
TEST_F(OverdueStep, C11_PodsThatReadATextInBetweenAreListedAgain) {
  text_was_written(now - seconds(10));
  ran_for(Timer::unchanged, seconds(10));
  EXPECT_EQ(act(), Actions{"into(ReplaceAgain)"});
  pod("new-gfd").meta.creation_timestamp = now - seconds(3);
  ASSERT_EQ(act(), Actions{"into(ReplaceAgain)"});
  EXPECT_EQ(written().pods.at(Component::gfd), PodUids{});
  EXPECT_EQ(written().pods.at(Component::plugin), PodUids{"new-plugin"});
}

TEST_F(OverdueStep, C11_WithMoreDevicesThanRecordedIsVerified) {
  facts.verified.surplus = true;
  facts.measured_gpus = 4;
  EXPECT_EQ(act(), Actions{"out(Verified)"});
}

TEST_F(OverdueStep, C11_OnANodeThatIsNotReadyProvesNothing) {
  shows_target();
  node.ready = facts.ready = false;
  EXPECT_EQ(act(), Actions{});
  EXPECT_EQ(reasons(), Actions{"NodesNotReady"});
}

TEST_F(OverdueStep, C11_AutoscalersMayRemoveAFailedNode) {
  change.guards = {"cluster-autoscaler"};
  node.meta.annotations.set("cluster-autoscaler.kubernetes.io/scale-down-disabled", "true");
  take();
  EXPECT_TRUE(patch().remove_annotations.contains("cluster-autoscaler.kubernetes.io/scale-down-disabled"));
}

TEST_F(NodeStep, C12_ALabelThatDidNotReloadWithinTwoMinutesListsThePods) {
  change.cause = ChangeCause::policy;
  change.pods.clear();
  change.touched = Touched::yes;
  shows_something_else();
  EXPECT_EQ(act(), Actions{});
  ran_for(Timer::reloading, minutes(2));
  EXPECT_EQ(look(), "C12 Verifying: into(ReloadFailed)");
}

}  // namespace
}  // namespace gso::node_step_end_test
