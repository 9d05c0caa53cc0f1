// Rows C1 to C6 of node_step.h: a node in a change that is held, backed out or drained.
#include <gtest/gtest.h>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/reasons/names.h"
#include "tests/reconcilers/node/node_step_fixture.h"

namespace gso::node_step_start_test {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

TEST_F(NodeStep, C1_ANodeThatSomebodyHoldsIsLeftAloneAndNoDeadlineRuns) {
  facts.holder = kHeld;
  stop = Reason{"Paused", ""};
  const Step taken = take();
  EXPECT_EQ(phase_of(facts), Phase::held);
  EXPECT_EQ(taken.row, StepRow::c1);
  EXPECT_EQ(actions(taken), Actions{});
  for (const TimerKey& key : taken.plan.timers) EXPECT_EQ(key.timer, Timer::unchanged);
}

TEST_F(NodeStep, C1_ADriverUpgradeHoldsItToo) {
  facts.holder = kDriverUpgrade;
  const Step taken = take();
  EXPECT_EQ(phase_of(facts), Phase::held);
  EXPECT_EQ(taken.row, StepRow::c1);
  EXPECT_EQ(actions(taken), Actions{});
}

TEST_F(NodeStep, C1_ACordonThatAPersonTookAwayIsForgottenOnceTheChangeIsTouched) {
  change.cordoned = true;
  EXPECT_EQ(actions(take()), (Actions{"into(Begin)", "delete old-plugin", "delete old-gfd"}));
  remove("old-gfd");
  const Step taken = take();
  ASSERT_EQ(actions(taken), Actions{"into(Uncordoned)"});
  const auto& patch = std::get<PatchNode>(taken.plan.actions.front().action);
  EXPECT_FALSE(parse_change(patch.set_annotations.at(std::string(kChangeAnnotation)))->cordoned);
}

TEST_F(NodeStep, C2_AFailedNodeStaysFailedWhileItShowsSomethingElse) {
  replace_all();
  shows_something_else();
  facts.phase = Phase::failed;
  change.failed = ChangeFailure{"did not verify", ""};
  const Step taken = take();
  EXPECT_EQ(phase_of(facts), Phase::failed);
  EXPECT_EQ(taken.row, StepRow::c2);
  EXPECT_EQ(actions(taken), Actions{});
}

TEST_F(NodeStep, C2_AFailedNodeThatShowsItsProfileAllTheSameRecovers) {
  replace_all();
  shows_target();
  change.failed = ChangeFailure{"did not verify", ""};
  EXPECT_EQ(actions(take()), Actions{"out(Recovered)"});
}

TEST_F(NodeStep, C3_AnUntouchedNodeIsBackedOutWhenItsTargetChanges) {
  change.to = "v1-other";
  change.cordoned = node.unschedulable = true;
  const Step taken = take();
  EXPECT_EQ(phase_of(facts), Phase::draining);
  EXPECT_EQ(taken.row, StepRow::c3);
  EXPECT_EQ(actions(taken), Actions{"out(Superseded) uncordon"});
}

TEST_F(NodeStep, C3_AnUntouchedNodeIsBackedOutWhenAnObstacleComesUp) {
  facts.obstacle.code = kMigEnabled;
  facts.obstacle.message = "MIG";
  EXPECT_EQ(actions(take()), Actions{"out(MIGEnabled)"});
}

TEST_F(NodeStep, C3_AnUntouchedNodeIsBackedOutByAStop) {
  stop = Reason{"Aborted", "spec.aborted of the rollout is set"};
  EXPECT_EQ(actions(take()), Actions{"out(Aborted)"});
}

TEST_F(NodeStep, C3_AnUntouchedNodeIsBackedOutWhenItShowsItsTargetWithoutTheChange) {
  facts.cause = ChangeCause::ended;
  change.cordoned = node.unschedulable = true;
  const Step taken = take();
  EXPECT_EQ(taken.row, StepRow::c3);
  EXPECT_EQ(actions(taken), Actions{"out(NoLongerNeeded) uncordon"});
  remove("old-gfd");
  EXPECT_EQ(actions(take()), Actions{"delete old-plugin"}) << "a touched node goes on";
}

// Whoever deleted the pod, its successor has read the key that the node still has.
TEST_F(NodeStep, C3_BeforeItsLabelIsWrittenANodeIsUntouchedAlsoIfAListedPodIsGone) {
  change.cause = ChangeCause::policy;
  facts.label = Interned("gold");
  remove("old-gfd");
  stop = Reason{"IdleNodesFirst", "idle node n2 needs the slot"};
  EXPECT_EQ(actions(take()), Actions{"out(IdleNodesFirst)"});
  EXPECT_EQ(facts.phase, Phase::draining);
  change.touched = Touched::yes;
  EXPECT_EQ(actions(take()), (Actions{"patch(Relabel)", "delete old-plugin"})) << "another label was written before";
  EXPECT_EQ(facts.phase, Phase::restarting);
}

TEST_F(NodeStep, C3_UnderTheOperatorsOwnObserveNothingIsWrittenAndAFindingNamesTheCordon) {
  settings.rollouts = PolicyMode::observe;
  stop = Reason{"Observe", "the operator runs with max-mode Observe"};
  change.cordoned = node.unschedulable = true;
  const Step taken = take();
  EXPECT_EQ(actions(taken), Actions{});
  ASSERT_EQ(reasons(taken), Actions{"Observe"});
  EXPECT_NE(taken.plan.findings.front().why.message.find("stays cordoned"), std::string::npos);
}

TEST_F(NodeStep, C3_UnderTheOperatorsOwnObserveANewTargetIsNoReasonToWriteEither) {
  settings.rollouts = PolicyMode::observe;
  stop = Reason{"Observe", "the operator runs with max-mode Observe"};
  aim_at(kMpsFour);
  const Step taken = take();
  EXPECT_EQ(actions(taken), Actions{});
  EXPECT_EQ(reasons(taken), Actions{"Observe"});
}

TEST_F(NodeStep, C3_AForeignLabelBacksOutANodeWhosePodsAreAllReplaced) {
  replace_all();
  facts.label = Interned("other");
  facts.obstacle.code = kLabelOwnedByOther;
  EXPECT_EQ(actions(take()), Actions{"out(LabelOwnedByOther)"});
}

TEST_F(NodeStep, C3_AStopBacksNoNodeOutWhoseLabelIsWritten) {
  change.cause = ChangeCause::policy;
  change.pods.clear();
  shows_something_else();
  stop = Reason{"Paused", ""};
  const Step taken = take();
  EXPECT_EQ(actions(taken), Actions{});
  EXPECT_EQ(phase_of(facts), Phase::verifying);
}

TEST_F(NodeStep, C3_AStopBacksNoNodeOutWhoseLabelIsWrittenWhileItsDaemonStillRuns) {
  change.cause = ChangeCause::policy;
  change.kind = Transition::leave_mps;
  change.pods = {{Component::mps, {"old-mps"}}};
  add_pod("old-mps", Component::mps, now - hours(2));
  stop = Reason{"Paused", ""};
  const Step taken = take();
  EXPECT_EQ(actions(taken), Actions{});
  EXPECT_EQ(phase_of(facts), Phase::restarting);
}

TEST_F(NodeStep, C3_ANodeIsBackedOutIfItsPolicyDropsTheKeyBeforeTheLabelIsWritten) {
  change.cause = ChangeCause::policy;
  change.pods.clear();
  change.key = "gold";
  aim_at(kMpsFour);
  const Step taken = take();
  EXPECT_EQ(actions(taken), Actions{"out(Superseded)"});
  EXPECT_EQ(phase_of(facts), Phase::draining);
  EXPECT_EQ(taken.row, StepRow::c3);
}

// Whatever its labels show: its sidecars may have read the former text of the key that it has now.
TEST_F(NodeStep, C3_ANodeWhoseLabelSomebodyMovesOnLeavesAChangeThatListsNoPod) {
  change.cause = ChangeCause::policy;
  change.touched = Touched::yes;
  change.pods.clear();
  change.key = "gold";
  facts.pods_ready = facts.verified.ok = true;
  const Step taken = take();
  EXPECT_EQ(taken.row, StepRow::c3);
  ASSERT_EQ(actions(taken), Actions{"out(Superseded)"}) << "both keys have the same text";
  const auto& patch = std::get<PatchNode>(taken.plan.actions.front().action);
  EXPECT_FALSE(patch.set_annotations.contains(std::string(kRevisionAnnotation)));
  change.to = "v1-other";
  EXPECT_EQ(actions(take()), Actions{"out(Superseded)"});
  facts.label = Interned("gold");
  EXPECT_EQ(actions(take()), Actions{"into(Superseded)"}) << "its policy wants another label";
  facts.label.reset();
  facts.label_by = Interned("default");
  change.to = std::string(facts.target.view());
  EXPECT_EQ(actions(take()), Actions{"out(Verified)"}) << "the operator has written the label";
}

TEST_F(NodeStep, C4_ATouchedNodeIsNotFinishedIntoAnObstacle) {
  remove("old-gfd");
  facts.obstacle.code = kMigEnabled;
  facts.obstacle.message = "MIG";
  const Step taken = take();
  EXPECT_EQ(phase_of(facts), Phase::restarting);
  EXPECT_EQ(taken.row, StepRow::c4);
  EXPECT_EQ(actions(taken), Actions{});
  EXPECT_EQ(reasons(taken), Actions{"MIGEnabled"});
}

TEST_F(NodeStep, C4_ATouchedNodeIsNotFinishedIntoAnInvalidProfile) {
  remove("old-gfd");
  facts.profile = nullptr;
  facts.obstacle.code = kConfigInvalid;
  facts.obstacle.message = "line 3";
  const Step taken = take();
  EXPECT_EQ(actions(taken), Actions{});
  EXPECT_EQ(reasons(taken), Actions{"ConfigInvalid"});
}

TEST_F(NodeStep, C4_ATouchedNodeThatKaiUsesIsNotFinished) {
  remove("old-gfd");
  kai = KaiHindrance{true, "KAI shares the node's GPUs"};
  const Step taken = take();
  EXPECT_EQ(actions(taken), Actions{});
  EXPECT_EQ(reasons(taken), Actions{"KAIReservations"});
}

TEST_F(NodeStep, C4_AStopDoesNotHoldATouchedNode) {
  remove("old-gfd");
  stop = Reason{"Paused", ""};
  EXPECT_EQ(actions(take()), Actions{"delete old-plugin"});
}

TEST_F(NodeStep, C5_ATouchedNodeGoesOnToANewTargetWithANewList) {
  remove("old-gfd");
  add_pod("new-gfd", Component::gfd, now - seconds(5));
  change.to = "v1-other";
  const Step taken = take();
  ASSERT_EQ(actions(taken), Actions{"into(Superseded)"});
  const auto& patch = std::get<PatchNode>(taken.plan.actions.front().action);
  const auto written = parse_change(patch.set_annotations.at(std::string(kChangeAnnotation)));
  ASSERT_TRUE(written);
  EXPECT_EQ(written->to, facts.target.view());
  EXPECT_EQ(written->touched, Touched::yes);
  EXPECT_EQ(written->pods.at(Component::gfd), std::set<std::string>{"new-gfd"});
}

TEST_F(NodeStep, C5_ANodeWhoseLabelWasWrittenGoesOnWhenItsPolicyWantsItsFormerKeyAgain) {
  change.cause = ChangeCause::policy;
  change.pods.clear();
  change.touched = Touched::yes;
  change.to = "v1-other";
  facts.label = Interned("any");
  stop = Reason{"Paused", ""};
  const Step taken = take();
  ASSERT_EQ(actions(taken), Actions{"into(Superseded)"});
  const auto& patch = std::get<PatchNode>(taken.plan.actions.front().action);
  EXPECT_EQ(parse_change(patch.set_annotations.at(std::string(kChangeAnnotation)))->to, facts.target.view());
}

TEST_F(NodeStep, C5_ANewListWaitsForOneSecondAfterTheEdit) {
  remove("old-gfd");
  change.to = "v1-other";
  retargeted = std::chrono::milliseconds(900);
  const Step taken = take();
  EXPECT_EQ(actions(taken), Actions{});
  EXPECT_EQ(taken.row, StepRow::c5);
}

TEST_F(NodeStep, C6_ALiveChangeDeletesTheFirstPodsAtOnce) {
  EXPECT_EQ(actions(take()), (Actions{"into(Begin)", "delete old-plugin", "delete old-gfd"}));
}

TEST_F(NodeStep, C6_OnlyListedPodsThatAreNotTerminatingAreDeleted) {
  change.pods[Component::plugin].insert("older-plugin");
  add_pod("older-plugin", Component::plugin, now - hours(3)).meta.deletion_timestamp = now - minutes(1);
  add_pod("new-gfd", Component::gfd, now - minutes(1));
  EXPECT_EQ(actions(take()), (Actions{"delete old-plugin", "delete old-gfd"}));
}

TEST_F(NodeStep, C6_TheLabelIsWrittenWithTheFirstDeletions) {
  facts.label = Interned("gold");
  const Step taken = take();
  EXPECT_EQ(actions(taken), (Actions{"into(Relabel)", "delete old-plugin", "delete old-gfd"}));
  const auto& patch = std::get<PatchNode>(taken.plan.actions.front().action);
  EXPECT_EQ(patch.set.at("nvidia.com/device-plugin.config"), "gold");
  EXPECT_EQ(parse_change(patch.set_annotations.at(std::string(kChangeAnnotation)))->touched, Touched::yes);
}

TEST_F(NodeStep, C6_ANodeThatIsNotReadyLosesNoPodAndKeepsItsSlot) {
  node.ready = facts.ready = false;
  ran_for(Timer::not_ready, hours(1));
  for (const Touched touched : {Touched::no, Touched::yes}) {
    change.touched = touched;
    const Step taken = take();
    EXPECT_EQ(actions(taken), Actions{});
    EXPECT_EQ(reasons(taken), Actions{"NodesNotReady"});
  }
}

TEST_F(DisruptiveStep, C6_NoDeadlineRunsWhileTheNodeIsNotReady) {
  list_consumers({"train-0"});
  ran_for(Timer::draining, hours(2));
  ran_for(Timer::verifying, hours(2));
  node.ready = facts.ready = false;
  for (const Touched touched : {Touched::no, Touched::yes}) {
    change.touched = touched;
    const Step taken = take();
    EXPECT_EQ(actions(taken), Actions{});
    for (const TimerKey& timer : taken.plan.timers)
      EXPECT_TRUE(timer.timer == Timer::not_ready || timer.timer == Timer::unchanged) << to_string(timer.timer);
  }
}

// Somebody else has restarted GFD: that begins nothing, and the pods that run now are the ones to replace.
TEST_F(DisruptiveStep, C6_WhatOthersDeleteBeginsNoChange) {
  change.touched = Touched::no;
  remove("old-gfd");
  add_pod("others-gfd", Component::gfd, now - seconds(30));
  list_consumers({"train-0"});
  blocked_by_pods = Reason{kWaitingForWorkloads, "waits for team/train-0"};
  EXPECT_EQ(actions(take()), Actions{});
  EXPECT_EQ(phase_of(facts), Phase::draining);
  consumers.clear();
  list_consumers({});
  const Step taken = take();
  ASSERT_EQ(actions(taken), (Actions{"into(Begin)", "delete old-mps", "delete others-gfd"}));
  const auto& patch = std::get<PatchNode>(taken.plan.actions.front().action);
  EXPECT_EQ(patch.resource_version, node.meta.resource_version);
  const auto written = parse_change(patch.set_annotations.at(std::string(kChangeAnnotation)));
  ASSERT_TRUE(written);
  EXPECT_EQ(written->touched, Touched::yes);
  EXPECT_EQ(written->listed, change.listed) << "its deadlines go on";
  EXPECT_EQ(written->pods.at(Component::gfd), std::set<std::string>{"others-gfd"});
  list_consumers({"train-0"});
  ran_for(Timer::draining, hours(1));
  EXPECT_EQ(actions(take()), Actions{"out(WaitingForWorkloads) uncordon"}) << "it can still be backed out";
}

// Marked, and the operator was killed before it deleted a pod: the mark decides.
TEST_F(DisruptiveStep, C6_AMarkedChangeGoesOnAlsoIfAllItsPodsAreThere) {
  change.touched = Touched::yes;
  stop = Reason{"Paused", ""};
  list_consumers({});
  EXPECT_EQ(actions(take()), (Actions{"delete old-mps", "delete old-gfd"}));
}

TEST_F(DisruptiveStep, C3_WorkloadsThatWereWaitedForHaveHadTheirTurn) {
  change.touched = Touched::no;
  stop = Reason{"Paused", "spec.rollout.paused of the policy is set"};
  const auto remembered = [&] {
    const Step taken = take();
    const auto& patch = std::get<PatchNode>(taken.plan.actions.front().action);
    return patch.set_annotations.contains(std::string(kDeferredAnnotation));
  };
  EXPECT_TRUE(remembered()) << "nobody has listed them yet";
  list_consumers({"train-0"});
  EXPECT_TRUE(remembered());
  consumers.clear();
  list_consumers({});
  EXPECT_FALSE(remembered()) << "it was idle";
  change.had_turn = true;
  EXPECT_TRUE(remembered()) << "what is known stays known";
}

TEST_F(DisruptiveStep, C6_ANodeWhoseWorkloadsHadTheirTurnDoesNotWaitForThemAgain) {
  change.touched = Touched::no;
  change.had_turn = true;
  list_consumers({"train-0"});
  blocked_by_pods = Reason{kWaitingForWorkloads, "waits for team/train-0"};
  EXPECT_EQ(actions(take()), Actions{"out(WaitingForWorkloads) uncordon"});
  consumers.clear();
  list_consumers({});
  EXPECT_EQ(actions(take()), (Actions{"into(Begin)", "delete old-mps", "delete old-gfd"}));
}

// What a change that has replaced a failed one restores.
class ReplacedFailure : public DisruptiveStep {
 protected:
  ReplacedFailure() {
    failed_ = change;
    failed_.to = "v1-failed";
    failed_.failed = ChangeFailure{"the plugin crashes", ""};
    change.touched = Touched::no;
    stop = Reason{"Paused", "spec.rollout.paused of the policy is set"};
    list_consumers({});
  }

  PatchNode backed_out() {
    change.replaced = print_change(failed_);
    const Step taken = take();
    return std::get<PatchNode>(taken.plan.actions.front().action);
  }

  NodeChange failed_;
};

TEST_F(ReplacedFailure, C3_IsRestoredCordonAndAll) {
  const PatchNode patch = backed_out();
  EXPECT_EQ(patch.set_annotations.at(std::string(kChangeAnnotation)), print_change(failed_));
  EXPECT_EQ(patch.set.at(std::string(kStateLabel)), kStateFailed);
  EXPECT_FALSE(patch.unschedulable);
  EXPECT_NE(patch.set_annotations.at(std::string(kMessageAnnotation)).find("the plugin crashes"), std::string::npos);
}

TEST_F(ReplacedFailure, C3_LosesTheCordonThatOnlyTheNextChangeSet) {
  failed_.cordoned = false;
  const PatchNode patch = backed_out();
  EXPECT_EQ(patch.unschedulable, false);
  EXPECT_EQ(patch.set_annotations.at(std::string(kChangeAnnotation)), print_change(failed_));
}

TEST_F(ReplacedFailure, C3_IsNotSaidToBeCordonedAfterAPersonUncordonedTheNode) {
  node.unschedulable = false;
  const PatchNode patch = backed_out();
  EXPECT_FALSE(parse_change(patch.set_annotations.at(std::string(kChangeAnnotation)))->cordoned);
}

TEST_F(ReplacedFailure, C6_IsForgottenOnceTheNextChangeIsTouched) {
  stop.reset();
  change.replaced = print_change(failed_);
  const Step taken = take();
  const auto& patch = std::get<PatchNode>(taken.plan.actions.front().action);
  EXPECT_TRUE(parse_change(patch.set_annotations.at(std::string(kChangeAnnotation)))->replaced.empty());
}

TEST_F(DisruptiveStep, C6_PodsOfDaemonSetsThatLoseTheirGpusAreNamed) {
  list_consumers({"monitor-0"});
  consumers["n1"].pods.front().meta.owners.push_back(
      {Interned("DaemonSet"), Interned("monitor"), Interned("ds"), true});
  const Step taken = take();
  EXPECT_EQ(actions(taken), (Actions{"into(Begin)", "delete old-mps", "delete old-gfd"}));
  ASSERT_EQ(reasons(taken), Actions{"DaemonSetPodsInterrupted"});
  EXPECT_NE(taken.plan.findings.front().why.message.find("team/monitor-0"), std::string::npos);
}

TEST_F(DisruptiveStep, C6_ADrainAsksForTheNodesConsumersFirst) {
  const Step taken = take();
  EXPECT_EQ(phase_of(facts), Phase::draining);
  EXPECT_EQ(taken.row, StepRow::c6);
  EXPECT_EQ(actions(taken), Actions{});
  EXPECT_EQ(taken.plan.consumers_wanted, std::set<std::string>{"n1"});
}

TEST_F(DisruptiveStep, C6_AListingFromBeforeTheCordonProvesNothing) {
  list_consumers({});
  consumers["n1"].listed_at = one_look(now - seconds(5));
  ran = {{Timer::draining, seconds(3)}};
  const Step taken = take();
  EXPECT_EQ(actions(taken), Actions{});
  EXPECT_EQ(taken.plan.consumers_wanted, std::set<std::string>{"n1"});
}

TEST_F(DisruptiveStep, C6_ADrainWaitsForWorkloadsAndNamesThem) {
  list_consumers({"train-0"});
  blocked_by_pods = Reason{kWaitingForWorkloads, "waits for team/train-0"};
  const Step taken = take();
  EXPECT_EQ(actions(taken), Actions{});
  EXPECT_EQ(reasons(taken), Actions{"WaitingForWorkloads"});
  EXPECT_FALSE(taken.evicts);
}

TEST_F(DisruptiveStep, C6_UnderEvictItAsksForEvictions) {
  list_consumers({"train-0"});
  policy.rollout.workloads = WorkloadMode::evict;
  EXPECT_TRUE(take().evicts);
}

TEST_F(DisruptiveStep, C6_AnIdleNodeLosesDaemonAndGfdBeforeThePlugin) {
  list_consumers({});
  EXPECT_EQ(actions(take()), (Actions{"into(Begin)", "delete old-mps", "delete old-gfd"}));
}

TEST_F(DisruptiveStep, C6_ANodeThatStaysBusyIsUncordonedAndDeferred) {
  list_consumers({"train-0"});
  blocked_by_pods = Reason{kWaitingForWorkloads, "waits for team/train-0"};
  ran_for(Timer::draining, hours(1));
  const Step taken = take();
  ASSERT_EQ(actions(taken), Actions{"out(WaitingForWorkloads) uncordon"});
  const auto& patch = std::get<PatchNode>(taken.plan.actions.front().action);
  EXPECT_NE(patch.set_annotations.at(std::string(kDeferredAnnotation)).find("idleTimeout"), std::string::npos);
}

// The operator is restarted: the first look asks for the node's consumers, the second one decides.
TEST_F(DisruptiveStep, C6_AfterARestartTheIdleTimeoutGoesOnFromWhenThePodsWereListed) {
  blocked_by_pods = Reason{kWaitingForWorkloads, "waits for team/train-0"};
  for (const auto& [listed_ago, expected] : std::vector<std::pair<Duration, Actions>>{
           {minutes(58), {}}, {hours(1), {"out(WaitingForWorkloads) uncordon"}}}) {
    change.listed = now - std::chrono::duration_cast<seconds>(listed_ago);
    ran.clear();
    timers.clear();
    first_look = true;
    const Step first = take();
    EXPECT_EQ(actions(first), Actions{});
    EXPECT_EQ(first.plan.consumers_wanted, std::set<std::string>{"n1"});
    for (const auto& [timer, since] : first.plan.timer_starts) timers[timer] = since;
    first_look = false;
    list_consumers({"train-0"});
    EXPECT_EQ(actions(take()), expected) << k8s::format_go_duration(listed_ago);
    consumers.clear();
  }
}

TEST_F(DisruptiveStep, C6_AfterAHoldTheIdleTimeoutStartsWhenItEnded) {
  blocked_by_pods = Reason{kWaitingForWorkloads, "waits for team/train-0"};
  change.listed = now - hours(5);
  for (const auto& [released_ago, expected] : std::vector<std::pair<Duration, Actions>>{
           {minutes(58), {}}, {hours(1), {"out(WaitingForWorkloads) uncordon"}}}) {
    released = now - std::chrono::duration_cast<seconds>(released_ago);
    ran.clear();
    timers.clear();
    first_look = true;
    const Step first = take();
    for (const auto& [timer, since] : first.plan.timer_starts) timers[timer] = since;
    first_look = false;
    list_consumers({"train-0"});
    EXPECT_EQ(actions(take()), expected) << k8s::format_go_duration(released_ago);
    consumers.clear();
  }
}

TEST_F(DisruptiveStep, C6_ANodeThatAPersonUncordonsIsGivenBackAndDeferred) {
  node.unschedulable = false;
  list_consumers({"train-0"});
  const Step taken = take();
  EXPECT_EQ(actions(taken), (Actions{"out(WaitingForWorkloads)", "event Uncordoned"}));
}

TEST_F(DisruptiveStep, C6_ATouchedNodeIsNeverGivenBack) {
  remove("old-gfd");
  list_consumers({"train-0"});
  ran_for(Timer::draining, hours(2));
  EXPECT_EQ(actions(take()), Actions{});
}

}  // namespace
}  // namespace gso::node_step_start_test
