// Rows C5, C7 and C10 of node_step.h: a node half-way whose text or template is changed again.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <variant>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/policy.h"
#include "tests/reconcilers/node/node_step_fixture.h"

namespace gso::node_step_superseded_test {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

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
  EXPECT_NE(taken.plan.findings.front().why.message.find("team/train-0"), std::string::npos);
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
  change.touched = Touched::yes;
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

// The same with a valid text: it goes on to that, although it serves.
TEST_F(SupersededStep, C7_ANodeThatServesATextThatNothingHasAnyMoreIsListed) {
  node.allocatable[Interned("nvidia.com/gpu")] = node.capacity[Interned("nvidia.com/gpu")] = 8;
  const Step taken = take();
  EXPECT_EQ(taken.row, StepRow::c7);
  EXPECT_EQ(actions(taken), Actions{"into(Superseded)"});
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
  EXPECT_NE(taken.plan.findings.front().why.message.find("maintenance=true:NoSchedule"), std::string::npos);
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

// A node half-way to MPS that only the plugin reads anew: its daemon has run since before the change.
class KeptDaemon : public NodeStep {
 protected:
  KeptDaemon() {
    change.to = profiles.compile(mps_text("none", "failRequestsGreaterThanOne: false, "))->revision;
    change.kind = Transition::plugin_only;
    change.pods.erase(Component::gfd);
    replace_all();
    add_pod("old-mps", Component::mps, now - hours(2));
    node.meta.labels.set("nvidia.com/gpu.replicas", "4");
    shows_something_else();
    text_was_written(now - seconds(10));
    list_consumers({});
  }
  static std::string mps_text(std::string_view mig, std::string_view more = {}) {
    return fmt::format(
        "version: v1\nflags:\n  migStrategy: {}\nsharing:\n  mps: {{{}resources: [{{name: nvidia.com/gpu, replicas: "
        "4}}]}}\n",
        mig, more);
  }
  // The MPS pods that the change lists after this step.
  std::set<std::string> daemons_listed() {
    const Step taken = take();
    EXPECT_EQ(taken.row, StepRow::c7);
    const auto* patch = taken.plan.actions.empty() ? nullptr : std::get_if<PatchNode>(&taken.plan.actions[0].action);
    if (patch == nullptr) return {"no patch"};
    return parse_change(patch->set_annotations.at(std::string(kChangeAnnotation)))->pods[Component::mps];
  }
};

TEST_F(KeptDaemon, C7_IsListedForAnotherMigStrategy) {
  aim_at(mps_text("single"));
  EXPECT_EQ(daemons_listed(), std::set<std::string>{"old-mps"});
}

TEST_F(KeptDaemon, C7_StaysForATextThatItServes) {
  aim_at(mps_text("none"));
  EXPECT_EQ(daemons_listed(), std::set<std::string>{});
}

TEST_F(KeptDaemon, C7_IsListedIfTheTextOfTheChangeIsNotKnown) {
  aim_at(mps_text("none"));
  change.to = "v1-other";
  EXPECT_EQ(daemons_listed(), std::set<std::string>{"old-mps"});
}

}  // namespace
}  // namespace gso::node_step_superseded_test
