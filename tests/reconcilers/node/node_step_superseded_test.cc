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

TEST_F(SupersededStep, C7_NewPodsThatAreOlderThanTheTextAreListedOneSecondAfterTheEdit) {
  retargeted = std::chrono::milliseconds(900);
  EXPECT_EQ(look(), "C7 Verifying");
  retargeted = seconds(2);
  EXPECT_EQ(act(), Actions{"into(Superseded)"});
}

TEST_F(SupersededStep, C7_NotWhileKaiMayUseTheNodeOrItIsNotReady) {
  kai = KaiHindrance{false, "KAI's reservation pods are not listed yet"};
  EXPECT_EQ(look(), "C7 Verifying; KAIReservations");
  kai.reset();
  node.ready = facts.ready = false;
  EXPECT_EQ(act(), Actions{});
}

// The text became one that needs an idle node, and a Job runs there.
TEST_F(SupersededStep, C7_NotWhileItWouldWaitForWorkloads) {
  aim_at(kMpsFour);
  EXPECT_EQ(act(), Actions{}) << "its consumers are not listed yet";
  EXPECT_EQ(taken.plan.consumers_wanted, std::set<std::string>{"n1"});
  list_consumers({"train-0"});
  ASSERT_EQ(look(), "C7 Verifying; WaitingForWorkloads");
  EXPECT_TRUE(said().contains("team/train-0"));
}

// Its plugin serves and its GFD does not come up: further Jobs could start there.
TEST_F(SupersededStep, C7_BesideWorkloadsItIsListedIfOnlyItsPluginServesForLong) {
  aim_at(kMpsFour);
  list_consumers({"train-0"});
  pod("new-gfd").ready = false;
  ran_for(Timer::verifying, minutes(9));
  EXPECT_EQ(act(), Actions{});
  ran_for(Timer::verifying, minutes(10));
  EXPECT_EQ(act(), Actions{"into(Superseded) cordon"});
  pod("new-plugin").ready = false;
  EXPECT_EQ(act(), Actions{}) << "no workload can come to it";
}

// The label of the former key has just been written, and the policy names another key, which needs an idle node.
TEST_F(SupersededStep, C5_BesideWorkloadsANodeWhoseKeyMovesAgainLeavesOnceItHasShownTheFormer) {
  aim_at(kMpsFour);
  change.pods = {};
  change.touched = Touched::yes;
  facts.label = Interned("mps");
  list_consumers({"train-0"});
  EXPECT_EQ(act(), Actions{}) << "its sidecars reload";
  EXPECT_EQ(taken.row, StepRow::c5);
  serves(8);
  ASSERT_EQ(act(), Actions{"out(Unproven)"}) << "nothing has the text of v1-other any more";
  EXPECT_EQ(annotated(kRevisionAnnotation), kInvalidRevision);
  list_consumers({});
  EXPECT_EQ(act(), Actions{"into(Superseded) cordon"});
}

TEST_F(SupersededStep, C7_BesideWorkloadsItLeavesOnceItHasShownWhatItRead) {
  aim_at(kMpsFour);
  list_consumers({"train-0"});
  facts.pods_ready = false;  // The daemon that the new text needs is not there.
  serves(8);
  settings.status_lag = seconds(10);
  EXPECT_EQ(act(), Actions{}) << "for less than the status lag";
  ran_for(Timer::shown, settings.status_lag);
  ASSERT_EQ(act(), Actions{"out(Unproven)"}) << "nothing has the text of v1-other any more";
  EXPECT_EQ(annotated(kRevisionAnnotation), kInvalidRevision) << "not the text of the edit";
  pod("new-gfd").ready = false;
  EXPECT_EQ(act(), Actions{}) << "not while a pod is not Ready";
}

// Its pods serve, and need not have read that text. The one that its key has now is invalid.
TEST_F(SupersededStep, C10_ANodeWhoseTextNothingHasAnyMoreLeavesUnproven) {
  facts.profile =
      profiles.compile("version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 1}]}}\n");
  ASSERT_FALSE(facts.profile->valid);
  facts.target = Interned(kInvalidRevision);
  EXPECT_EQ(act(), Actions{}) << "it serves no GPU";
  serves(8);
  ASSERT_EQ(look(), "C10 Verifying: out(Unproven)");
  EXPECT_EQ(annotated(kRevisionAnnotation), kInvalidRevision);
}

// The same with a valid text: it goes on to that, although it serves.
TEST_F(SupersededStep, C7_ANodeThatServesATextThatNothingHasAnyMoreIsListed) {
  serves(8);
  EXPECT_EQ(look(), "C7 Verifying: into(Superseded)");
}

TEST_F(SupersededStep, C7_AtOnceWhereNoWorkloadIsLeftOrNobodyWaitsForIt) {
  aim_at(kMpsFour);
  list_consumers({});
  EXPECT_EQ(act(), Actions{"into(Superseded) cordon"});
  list_consumers({"train-0"});
  for (const WorkloadMode mode : {WorkloadMode::evict, WorkloadMode::interrupt}) {
    policy.rollout.workloads = mode;
    EXPECT_EQ(act(), Actions{"into(Superseded) cordon"}) << static_cast<int>(mode);
  }
}

TEST_F(SupersededStep, C7_ATaintThatKeepsTheNewPodsAwayIsReported) {
  facts.taint = Interned("maintenance=true:NoSchedule, which DaemonSet a/b does not tolerate");
  facts.pods_ready = facts.fresh_pods = false;
  change.to = std::string(facts.target.view());
  EXPECT_EQ(act(), Actions{});
  ASSERT_EQ(reasons(), Actions{"TaintNotTolerated"});
  EXPECT_TRUE(said().contains("maintenance=true:NoSchedule"));
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
    facts.pods_ready = false;
  }
};

TEST_F(TakenBackTemplate, C7_NewPodsThatAreNotReadyAreListedForTheNewestOne) {
  replace_all_from("h2");
  ASSERT_EQ(look(), "C7 Verifying: into(Superseded)");
  EXPECT_EQ(written().cause, ChangeCause::new_template);
  EXPECT_EQ(written().pods.at(Component::plugin), PodUids{"new-plugin"});
}

TEST_F(TakenBackTemplate, C7_NewPodsOfTheNewestTemplateAreWaitedForAlsoBesideAPodThatTheChangeDidNotCreate) {
  replace_all_from("h1");
  EXPECT_EQ(act(), Actions{});
  add_pod("old-mps", Component::mps, now - hours(2));
  has_template("old-mps", "h0");
  EXPECT_EQ(act(), Actions{});
}

TEST_F(TakenBackTemplate, C5_ListedPodsAreListedAgainWithTheNewOnes) {
  remove("old-gfd");
  add_pod("new-gfd", Component::gfd, now - seconds(5));
  has_template("new-gfd", "h2");
  facts.pods_ready = false;
  EXPECT_EQ(look(), "C5 Restarting: into(Superseded)");
}

// Somebody moves the label of a node to another key while its new pods come up: what its labels show can be the former
// text of that key.
TEST_F(SupersededStep, C10_LabelsProveNothingOnceTheNodeHasAnotherKey) {
  change.to = profiles.compile(kMpsFour)->revision;
  facts.verified.ok = true;
  EXPECT_EQ(act(), Actions{"out(Verified)"}) << "the key is the one of the change";
  facts.key = Interned("other");
  EXPECT_EQ(look(), "C7 Verifying: into(Superseded)");
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
};

TEST_F(KeptDaemon, C7_IsListedForAnotherMigStrategyOrIfTheTextOfTheChangeIsNotKnown) {
  const PodUids daemon{"old-mps"};
  aim_at(mps_text("none"));
  EXPECT_EQ(take().row, StepRow::c7);
  EXPECT_EQ(written().pods[Component::mps], PodUids{}) << "it serves the new text";
  aim_at(mps_text("single"));
  EXPECT_EQ(take().row, StepRow::c7);
  EXPECT_EQ(written().pods[Component::mps], daemon);
  aim_at(mps_text("none"));
  change.to = "v1-other";
  EXPECT_EQ(take().row, StepRow::c7);
  EXPECT_EQ(written().pods[Component::mps], daemon);
}

}  // namespace
}  // namespace gso::node_step_superseded_test
