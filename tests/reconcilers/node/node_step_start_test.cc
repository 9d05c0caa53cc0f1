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

TEST_F(NodeStep, C1_ANodeThatADriverUpgradeOrAPersonHoldsIsLeftAloneAndNoDeadlineRuns) {
  facts.holder = kDriverUpgrade;
  EXPECT_EQ(look(), "C1 Held");
  facts.holder = kHeld;
  stop = Reason{"Paused", ""};
  EXPECT_EQ(look(), "C1 Held");
  for (const TimerKey& key : taken.plan.timers) EXPECT_EQ(key.timer, Timer::unchanged);
}

TEST_F(NodeStep, C1_ACordonThatAPersonTookAwayIsForgottenOnceTheChangeIsTouched) {
  change.cordoned = true;
  EXPECT_EQ(act(), (Actions{"into(Begin)", "delete old-plugin", "delete old-gfd"}));
  remove("old-gfd");
  ASSERT_EQ(act(), Actions{"into(Uncordoned)"});
  EXPECT_FALSE(written().cordoned);
}

TEST_F(NodeStep, C2_AFailedNodeStaysFailedUntilItShowsItsProfileAllTheSame) {
  replace_all();
  shows_something_else();
  change.failed = ChangeFailure{"did not verify", ""};
  EXPECT_EQ(look(), "C2 Failed");
  shows_target();
  EXPECT_EQ(act(), Actions{"out(Recovered)"});
}

TEST_F(NodeStep, C3_AnUntouchedNodeIsBackedOutByANewTargetAnObstacleAStopOrTheEndOfItsCause) {
  change.cordoned = node.unschedulable = true;
  const std::string target = std::exchange(change.to, "v1-other");
  EXPECT_EQ(look(), "C3 Draining: out(Superseded) uncordon");
  change.to = target;
  facts.obstacle = Reason{kMigEnabled, "MIG"};
  EXPECT_EQ(act(), Actions{"out(MIGEnabled) uncordon"});
  facts.obstacle = {};
  stop = Reason{"Aborted", "spec.aborted of the rollout is set"};
  EXPECT_EQ(act(), Actions{"out(Aborted) uncordon"});
  stop.reset();
  facts.cause = ChangeCause::ended;
  EXPECT_EQ(look(), "C3 Draining: out(NoLongerNeeded) uncordon");
  change.cordoned = node.unschedulable = false;
  remove("old-gfd");
  EXPECT_EQ(act(), Actions{"delete old-plugin"}) << "a touched node goes on";
}

// Whoever deleted the pod, its successor has read the key that the node still has.
TEST_F(NodeStep, C3_BeforeItsLabelIsWrittenANodeIsUntouchedAlsoIfAListedPodIsGone) {
  change.cause = ChangeCause::policy;
  facts.label = Interned("gold");
  remove("old-gfd");
  stop = Reason{"IdleNodesFirst", "idle node n2 needs the slot"};
  EXPECT_EQ(look(), "C3 Draining: out(IdleNodesFirst)");
  change.touched = Touched::yes;
  EXPECT_EQ(act(), (Actions{"patch(Relabel)", "delete old-plugin"})) << "another label was written before";
  EXPECT_EQ(facts.phase, Phase::restarting);
}

TEST_F(NodeStep, C3_UnderTheOperatorsOwnObserveNothingIsWrittenAndAFindingNamesTheCordon) {
  settings.rollouts = PolicyMode::observe;
  stop = Reason{"Observe", "the operator runs with max-mode Observe"};
  change.cordoned = node.unschedulable = true;
  EXPECT_EQ(look(), "C3 Draining; Observe");
  EXPECT_TRUE(said().contains("stays cordoned"));
  aim_at(kMpsFour);
  EXPECT_EQ(look(), "C3 Draining; Observe") << "a new target is no reason to write either";
}

TEST_F(NodeStep, C3_AForeignLabelBacksOutANodeWhosePodsAreAllReplaced) {
  replace_all();
  facts.label = Interned("other");
  facts.obstacle.code = kLabelOwnedByOther;
  EXPECT_EQ(act(), Actions{"out(LabelOwnedByOther)"});
}

TEST_F(NodeStep, C3_AStopBacksNoNodeOutWhoseLabelIsWrittenAlsoWhileItsDaemonStillRuns) {
  change.cause = ChangeCause::policy;
  change.pods.clear();
  shows_something_else();
  stop = Reason{"Paused", ""};
  EXPECT_EQ(look(), "wait Verifying");
  change.kind = Transition::leave_mps;
  change.pods = {{Component::mps, {"old-mps"}}};
  add_pod("old-mps", Component::mps, now - hours(2));
  facts.pods_ready = false;
  facts.verified = {};
  EXPECT_EQ(act(), Actions{});
  EXPECT_EQ(phase_of(facts), Phase::restarting);
}

TEST_F(NodeStep, C3_ANodeIsBackedOutIfItsPolicyDropsTheKeyBeforeTheLabelIsWritten) {
  change.cause = ChangeCause::policy;
  change.pods.clear();
  change.key = "gold";
  aim_at(kMpsFour);
  EXPECT_EQ(look(), "C3 Draining: out(Superseded)");
}

// Whatever its labels show: its sidecars may have read the former text of the key that it has now.
TEST_F(NodeStep, C3_ANodeWhoseLabelSomebodyMovesOnLeavesAChangeThatListsNoPod) {
  change.cause = ChangeCause::policy;
  change.touched = Touched::yes;
  change.pods.clear();
  change.key = "gold";
  facts.pods_ready = facts.verified.ok = true;
  ASSERT_EQ(act(), Actions{"out(Superseded)"}) << "both keys have the same text";
  EXPECT_EQ(taken.row, StepRow::c3);
  EXPECT_FALSE(patch().set_annotations.contains(std::string(kRevisionAnnotation)));
  change.to = "v1-other";
  EXPECT_EQ(act(), Actions{"out(Superseded)"});
  facts.label = Interned("gold");
  EXPECT_EQ(act(), Actions{"into(Superseded)"}) << "its policy wants another label";
  facts.label.reset();
  facts.label_by = Interned("default");
  change.to = std::string(facts.target.view());
  EXPECT_EQ(act(), Actions{"out(Verified)"}) << "the operator has written the label";
}

TEST_F(NodeStep, C4_ATouchedNodeIsNotFinishedIntoAnObstacleAnInvalidProfileOrKaisHands) {
  remove("old-gfd");
  facts.obstacle = Reason{kMigEnabled, "MIG"};
  EXPECT_EQ(look(), "C4 Restarting; MIGEnabled");
  const ProfilePtr valid = std::exchange(facts.profile, nullptr);
  facts.obstacle = Reason{kConfigInvalid, "line 3"};
  EXPECT_EQ(look(), "C4 Restarting; ConfigInvalid");
  facts.profile = valid;
  facts.obstacle = {};
  kai = KaiHindrance{true, "KAI shares the node's GPUs"};
  EXPECT_EQ(look(), "C4 Restarting; KAIReservations");
  kai.reset();
  stop = Reason{"Paused", ""};
  EXPECT_EQ(act(), Actions{"delete old-plugin"}) << "a stop does not hold it";
}

TEST_F(NodeStep, C5_ATouchedNodeGoesOnToANewTargetWithANewListOneSecondAfterTheEdit) {
  remove("old-gfd");
  add_pod("new-gfd", Component::gfd, now - seconds(5));
  change.to = "v1-other";
  retargeted = std::chrono::milliseconds(900);
  EXPECT_EQ(look(), "C5 Restarting");
  retargeted = seconds(2);
  ASSERT_EQ(act(), Actions{"into(Superseded)"});
  EXPECT_EQ(written().to, facts.target.view());
  EXPECT_EQ(written().touched, Touched::yes);
  EXPECT_EQ(written().pods.at(Component::gfd), PodUids{"new-gfd"});
}

TEST_F(NodeStep, C5_ANodeWhoseLabelWasWrittenGoesOnWhenItsPolicyWantsItsFormerKeyAgain) {
  change.cause = ChangeCause::policy;
  change.pods.clear();
  change.touched = Touched::yes;
  change.to = "v1-other";
  facts.label = Interned("any");
  stop = Reason{"Paused", ""};
  ASSERT_EQ(act(), Actions{"into(Superseded)"});
  EXPECT_EQ(written().to, facts.target.view());
}

TEST_F(NodeStep, C6_ALiveChangeDeletesListedPodsThatAreNotTerminatingAtOnce) {
  EXPECT_EQ(act(), (Actions{"into(Begin)", "delete old-plugin", "delete old-gfd"}));
  change.pods[Component::plugin].insert("older-plugin");
  add_pod("older-plugin", Component::plugin, now - hours(3)).meta.deletion_timestamp = now - minutes(1);
  add_pod("new-gfd", Component::gfd, now - minutes(1));
  EXPECT_EQ(act(), (Actions{"delete old-plugin", "delete old-gfd"}));
}

TEST_F(NodeStep, C6_TheLabelIsWrittenWithTheFirstDeletions) {
  facts.label = Interned("gold");
  EXPECT_EQ(act(), (Actions{"into(Relabel)", "delete old-plugin", "delete old-gfd"}));
  EXPECT_EQ(patch().set.at("nvidia.com/device-plugin.config"), "gold");
  EXPECT_EQ(written().touched, Touched::yes);
}

TEST_F(NodeStep, C6_ANodeThatIsNotReadyLosesNoPodAndKeepsItsSlot) {
  node.ready = facts.ready = false;
  ran_for(Timer::not_ready, hours(1));
  for (const Touched touched : {Touched::no, Touched::yes}) {
    change.touched = touched;
    EXPECT_EQ(act(), Actions{});
    EXPECT_EQ(reasons(), Actions{"NodesNotReady"});
  }
}

TEST_F(DisruptiveStep, C6_NoDeadlineRunsWhileTheNodeIsNotReady) {
  list_consumers({"train-0"});
  ran_for(Timer::draining, hours(2));
  ran_for(Timer::verifying, hours(2));
  node.ready = facts.ready = false;
  for (const Touched touched : {Touched::no, Touched::yes}) {
    change.touched = touched;
    EXPECT_EQ(act(), Actions{});
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
  blocked_by_pods = kBusy;
  EXPECT_EQ(act(), Actions{});
  EXPECT_EQ(phase_of(facts), Phase::draining);
  list_consumers({});
  ASSERT_EQ(act(), (Actions{"into(Begin)", "delete old-mps", "delete others-gfd"}));
  EXPECT_EQ(patch().resource_version, node.meta.resource_version);
  EXPECT_EQ(written().touched, Touched::yes);
  EXPECT_EQ(written().listed, change.listed) << "its deadlines go on";
  EXPECT_EQ(written().pods.at(Component::gfd), PodUids{"others-gfd"});
  list_consumers({"train-0"});
  ran_for(Timer::draining, hours(1));
  EXPECT_EQ(act(), Actions{"out(WaitingForWorkloads) uncordon"}) << "it can still be backed out";
}

// Marked, and the operator was killed before it deleted a pod: the mark decides.
TEST_F(DisruptiveStep, C6_AMarkedChangeGoesOnAlsoIfAllItsPodsAreThere) {
  change.touched = Touched::yes;
  stop = Reason{"Paused", ""};
  list_consumers({});
  EXPECT_EQ(act(), (Actions{"delete old-mps", "delete old-gfd"}));
}

TEST_F(DisruptiveStep, C3_WorkloadsThatWereWaitedForHaveHadTheirTurn) {
  change.touched = Touched::no;
  stop = Reason{"Paused", "spec.rollout.paused of the policy is set"};
  const auto remembered = [&] {
    take();
    return patch().set_annotations.contains(std::string(kDeferredAnnotation));
  };
  EXPECT_TRUE(remembered()) << "nobody has listed them yet";
  list_consumers({"train-0"});
  EXPECT_TRUE(remembered());
  list_consumers({});
  EXPECT_FALSE(remembered()) << "it was idle";
  change.had_turn = true;
  EXPECT_TRUE(remembered()) << "what is known stays known";
}

TEST_F(DisruptiveStep, C6_ANodeWhoseWorkloadsHadTheirTurnDoesNotWaitForThemAgain) {
  change.touched = Touched::no;
  change.had_turn = true;
  list_consumers({"train-0"});
  blocked_by_pods = kBusy;
  EXPECT_EQ(act(), Actions{"out(WaitingForWorkloads) uncordon"});
  list_consumers({});
  EXPECT_EQ(act(), (Actions{"into(Begin)", "delete old-mps", "delete old-gfd"}));
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
  const PatchNode& next_patch() {
    change.replaced = print_change(failed_);
    take();
    return patch();
  }

  NodeChange failed_;
};

TEST_F(ReplacedFailure, C3_IsRestoredWithItsCordonAndWithoutOneThatOnlyTheNextChangeSet) {
  EXPECT_FALSE(next_patch().unschedulable);
  EXPECT_EQ(annotated(kChangeAnnotation), print_change(failed_));
  EXPECT_EQ(patch().set.at(std::string(kStateLabel)), kStateFailed);
  EXPECT_TRUE(annotated(kMessageAnnotation).contains("the plugin crashes"));
  failed_.cordoned = false;
  EXPECT_EQ(next_patch().unschedulable, false);
  EXPECT_EQ(annotated(kChangeAnnotation), print_change(failed_));
}

TEST_F(ReplacedFailure, C3_IsNotSaidToBeCordonedAfterAPersonUncordonedTheNode) {
  node.unschedulable = false;
  next_patch();
  EXPECT_FALSE(written().cordoned);
}

TEST_F(ReplacedFailure, C6_IsForgottenOnceTheNextChangeIsTouched) {
  stop.reset();
  next_patch();
  EXPECT_EQ(written().replaced, "");
}

TEST_F(DisruptiveStep, C6_PodsOfDaemonSetsThatLoseTheirGpusAreNamed) {
  list_consumers({"monitor-0"});
  consumers["n1"].pods.front().meta.owners.push_back(
      {Interned("DaemonSet"), Interned("monitor"), Interned("ds"), true});
  EXPECT_EQ(act(), (Actions{"into(Begin)", "delete old-mps", "delete old-gfd"}));
  ASSERT_EQ(reasons(), Actions{"DaemonSetPodsInterrupted"});
  EXPECT_TRUE(said().contains("team/monitor-0"));
}

TEST_F(DisruptiveStep, C6_ADrainAsksForTheNodesConsumersFirst) {
  EXPECT_EQ(look(), "C6 Draining");
  EXPECT_EQ(taken.plan.consumers_wanted, std::set<std::string>{"n1"});
}

TEST_F(DisruptiveStep, C6_AListingFromBeforeTheCordonProvesNothing) {
  list_consumers({});
  consumers["n1"].listed_at = one_look(now - seconds(5));
  ran = {{Timer::draining, seconds(3)}};
  EXPECT_EQ(act(), Actions{});
  EXPECT_EQ(taken.plan.consumers_wanted, std::set<std::string>{"n1"});
}

TEST_F(DisruptiveStep, C6_ADrainNamesTheWorkloadsThatItWaitsForAndIsDeferredAfterIdleTimeout) {
  list_consumers({"train-0"});
  blocked_by_pods = kBusy;
  EXPECT_EQ(look(), "C6 Draining; WaitingForWorkloads");
  EXPECT_FALSE(taken.evicts);
  ran_for(Timer::draining, hours(1));
  ASSERT_EQ(act(), Actions{"out(WaitingForWorkloads) uncordon"});
  EXPECT_TRUE(annotated(kDeferredAnnotation).contains("idleTimeout"));
}

TEST_F(DisruptiveStep, C6_UnderEvictItAsksForEvictionsUntilTheNodeIsIdle) {
  list_consumers({"train-0"});
  policy.rollout.workloads = WorkloadMode::evict;
  EXPECT_TRUE(take().evicts);
  policy.rollout.workloads = WorkloadMode::wait_for_idle;
  list_consumers({});
  EXPECT_EQ(act(), (Actions{"into(Begin)", "delete old-mps", "delete old-gfd"}));
}

// The operator is restarted: the first look asks for the node's consumers, the second one decides.
TEST_F(DisruptiveStep, C6_AfterARestartTheIdleTimeoutGoesOnFromWhenThePodsWereListedOrAHoldEnded) {
  blocked_by_pods = kBusy;
  const auto ends_after = [&](WallTime& start, minutes age) {
    start = now - age;
    ran.clear();
    timers.clear();
    consumers.clear();
    first_look = true;
    EXPECT_EQ(act(), Actions{});
    EXPECT_EQ(taken.plan.consumers_wanted, std::set<std::string>{"n1"});
    for (const auto& [timer, since] : taken.plan.timer_starts) timers[timer] = since;
    first_look = false;
    list_consumers({"train-0"});
    return act() == Actions{"out(WaitingForWorkloads) uncordon"};
  };
  EXPECT_FALSE(ends_after(change.listed, minutes(58)));
  EXPECT_TRUE(ends_after(change.listed, minutes(60)));
  change.listed = now - hours(5);
  EXPECT_FALSE(ends_after(released.emplace(), minutes(58)));
  EXPECT_TRUE(ends_after(*released, minutes(60)));
}

TEST_F(DisruptiveStep, C6_ANodeThatAPersonUncordonsIsGivenBackAndDeferred) {
  node.unschedulable = false;
  list_consumers({"train-0"});
  EXPECT_EQ(act(), (Actions{"out(WaitingForWorkloads)", "event Uncordoned"}));
}

TEST_F(DisruptiveStep, C6_ATouchedNodeIsNeverGivenBack) {
  remove("old-gfd");
  list_consumers({"train-0"});
  ran_for(Timer::draining, hours(2));
  EXPECT_EQ(act(), Actions{});
}

}  // namespace
}  // namespace gso::node_step_start_test
