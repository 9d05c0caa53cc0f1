// `rollout status` and `start` after changes that no status shows yet: an edit or a retry that no operator has seen,
// and a pause that stops no node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/commands/commands.h"
#include "controller/commands/status.h"
#include "reconcilers/cluster/record_store.h"
#include "reconcilers/fleet/pass.h"
#include "reconcilers/model/json_access.h"
#include "tests/change_words/change_words.h"
#include "tests/controller/commands/rollout_commands.h"

namespace gso::rollout_unseen_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using Verb = RolloutOptions::Verb;
using Json = nlohmann::json;

class UnseenChange : public RolloutCommand {
 protected:
  // What an operator wrote last into the status of the policy.
  void progressing(const std::string& reason, const std::string& message) {
    const Json condition{{"type", "Progressing"},
                         {"status", "False"},
                         {"reason", reason},
                         {"message", message},
                         {"lastTransitionTime", "2026-01-01T00:00:00Z"}};
    merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default/status",
          Json{{"status", {{"conditions", Json::array({condition})}}}}.dump());
  }
  void abort(const std::string& name, bool paused = false) {
    merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/" + name,
          Json{{"spec", {{"aborted", true}, {"paused", paused}}}}.dump());
  }
  void stop_operator() { sim.clock.run_for(std::chrono::hours(2)); }
  // To the present text of the key.
  std::string name_of_present() { return rollout_name({"default", "gpu-operator/mps-config", "any"}, target()); }
  // The rollout to the present text was aborted, as an operator has recorded.
  std::string abort_present(bool paused) {
    FleetRecord kept = edit_behind_pods_of({"gpu-1"});
    RecordedSwitches switches;
    switches.policy = "default";
    switches.config_map = "gpu-operator/mps-config";
    switches.key = "any";
    switches.revision = target();
    switches.aborted = true;
    switches.paused = paused;
    kept.rollouts.push_back(switches);
    record(print_head({kept}));
    const std::string name = name_of_present();
    rollout(name, "Failed", target(), "any", "version: v1\n", "default", "Aborted");
    abort(name, paused);
    progressing("Aborted", "the rollout was aborted");
    return name;
  }
};

TEST_F(UnseenChange, AnEditThatNoOperatorHasSeenIsNamedWithWhatStopsIt) {
  record(print_head({edit_behind_pods_of({"gpu-1"})}));
  progressing("Settled", "nothing is being changed");
  stop_operator();
  for (const char* name : {"", "policy/default"}) {
    EXPECT_EQ(run(Verb::status, name), 1) << err.str();
    EXPECT_THAT(out.str(),
                testing::ContainsRegex("policy default waits: NotStarted: 1 node waits for the edit of ConfigMap "
                                       "gpu-operator/mps-config( \\(20[^)]*Z\\))?; it starts when an operator runs\n"
                                       "  to stop it: gpu-sharing-operator rollout pause policy/default\n"));
    EXPECT_THAT(out.str(), Not(HasSubstr("No rollout is in progress")));
  }
  options.json = true;
  EXPECT_EQ(run(Verb::status), 1);
  const Json waiting = Json::parse(out.str())["waiting"];
  ASSERT_EQ(waiting.size(), 1U);
  EXPECT_EQ(waiting[0]["reason"], "NotStarted");
  options.json = false;
  ASSERT_EQ(run(Verb::pause, "policy/default"), 0) << err.str();
  EXPECT_EQ(run(Verb::status), 1);
  EXPECT_THAT(out.str(), HasSubstr("policy default waits: Paused: "));
  EXPECT_THAT(out.str(), Not(HasSubstr("NotStarted")));
}

// Regression: it reported the rollout before the edit, with what its nodes waited for, and not the edit.
TEST_F(UnseenChange, AnEditBehindARolloutUnderWayIsNamedWhereNoOperatorHasSeenIt) {
  record(print_head({edit_behind_pods_of({"gpu-1"})}));
  rollout("r", "Progressing", "v1-2");
  const Json node{
      {"name", "gpu-1"}, {"state", "Waiting"}, {"reason", "WaitingForWorkloads"}, {"message", "waits for team/a"}};
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status",
        Json{{"status", {{"nodes", Json::array({node})}}}}.dump());
  merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default/status",
        R"({"status":{"nodes":{"pending":1},"conditions":[{"type":"Progressing","status":"True","reason":"RollingOut",
            "message":"1 node waits","lastTransitionTime":"2026-01-01T00:00:00Z"}]}})");
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_THAT(out.str(), testing::StartsWith("r: Progressing\n")) << "an operator runs";
  EXPECT_THAT(out.str(), HasSubstr("WaitingForWorkloads"));
  stop_operator();
  EXPECT_EQ(run(Verb::status), 1) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("\nr: Progressing (as last reported; its nodes should run " + target() +
                                   " now, and no operator has seen that)\n"));
  EXPECT_THAT(out.str(), HasSubstr("2/4 up to date, 1 in progress, 1 pending, 0 blocked, 0 failed, as last reported"));
  EXPECT_THAT(out.str(),
              testing::ContainsRegex("policy default waits: NotStarted: 1 node waits for the edit of ConfigMap "
                                     "gpu-operator/mps-config( \\(20[^)]*Z\\))?; it starts when an operator runs\n"
                                     "  to stop it: gpu-sharing-operator rollout pause policy/default\n"));
  EXPECT_THAT(out.str(), Not(testing::AnyOf(HasSubstr("WaitingForWorkloads"), HasSubstr("  next: "))));
  options.json = true;
  EXPECT_EQ(run(Verb::status), 1);
  const Json document = Json::parse(out.str());
  ASSERT_EQ(document["waiting"].size(), 1U);
  EXPECT_EQ(document["waiting"][0]["reason"], "NotStarted");
  EXPECT_TRUE(document["rollouts"][0]["next"].empty());
}

// The nodes start although the status still speaks of the abort.
TEST_F(UnseenChange, AnAbortOfAnEarlierRevisionHoldsNoNode) {
  record(print_head({edit_behind_pods_of({"gpu-1"})}));
  rollout("old", "Failed", "v1-2", "any", "version: v1\n", "default", "Aborted");
  abort("old");
  progressing("Aborted", "the rollout was aborted; the remaining nodes are not changed");
  EXPECT_EQ(run(Verb::status), 0) << out.str();
  EXPECT_THAT(out.str(), Not(HasSubstr("Aborted: "))) << "an operator runs";
  stop_operator();
  EXPECT_EQ(run(Verb::status), 1) << "no operator runs";
  EXPECT_THAT(out.str(), HasSubstr("policy default waits: NotStarted: the abort was of v1-2, and key any of ConfigMap "
                                   "gpu-operator/mps-config has " +
                                   target() + " now: 1 node waits for the edit of ConfigMap gpu-operator/mps-config"));
  EXPECT_THAT(out.str(), HasSubstr("; it starts when an operator runs\n"
                                   "  to stop it: gpu-sharing-operator rollout pause policy/default\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("rollout start")));
}

// Regression: the edit went on to roll out, and nothing said that the abort was not of it.
TEST_F(UnseenChange, ASwitchOfARolloutThatAnEditReplacesSaysThatItDoesNotStopTheEdit) {
  record(print_head({edit_behind_pods_of({"gpu-1"})}));
  rollout("r", "Progressing", "v1-2");
  for (const auto& [verb, done] : {std::pair(Verb::pause, "paused"), std::pair(Verb::abort, "aborted")}) {
    EXPECT_EQ(run(verb), 0) << err.str();
    EXPECT_EQ(spec_of("r")[done], true);
    EXPECT_THAT(out.str(), testing::StartsWith(std::string("r: ") + done + ": "));
    EXPECT_THAT(out.str(),
                testing::ContainsRegex(
                    std::string("\n  policy default: a newer change replaces that rollout, and is ") + "not " + done +
                    "(: nodes start at [^\n]*)?. To stop it: gpu-sharing-operator rollout pause "
                    "policy/default\n$"));
  }
}

TEST_F(UnseenChange, AnAbortOfThePresentRevisionStillHolds) {
  (void)abort_present(false);
  stop_operator();
  EXPECT_EQ(run(Verb::status), 1);
  EXPECT_THAT(out.str(), HasSubstr("policy default waits: Aborted: the rollout was aborted"));
  EXPECT_THAT(out.str(), HasSubstr("  next: gpu-sharing-operator rollout start default\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("NotStarted")));
}

TEST_F(UnseenChange, AStartThatNoOperatorReadsIsRecordedAndTheStatusSaysSo) {
  (void)abort_present(false);
  stop_operator();
  ASSERT_EQ(run(Verb::start), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("Recorded (an operator applies it; none is running): rolling out again what was "
                                   "aborted or undone under policy default\n"));
  EXPECT_EQ(run(Verb::status), 1);
  EXPECT_THAT(out.str(), HasSubstr("policy default waits: NotStarted: a retry is requested: 1 node waits for "));
  EXPECT_THAT(out.str(), Not(HasSubstr("Aborted")));
}

// A command that fails until an operator runs says so.
TEST_F(UnseenChange, AStartOfWhatIsPausedTooSaysWhenItCanBeResumed) {
  const std::string name = abort_present(true);
  stop_operator();
  ASSERT_EQ(run(Verb::start), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("  " + name +
                                   " is still paused: once an operator has created it again, gpu-sharing-operator "
                                   "rollout resume " +
                                   name + "\n"));
  EXPECT_EQ(run(Verb::status), 1);
  EXPECT_THAT(out.str(), HasSubstr("policy default waits: Paused: a retry is requested: "));
  EXPECT_THAT(out.str(), HasSubstr("  next: gpu-sharing-operator rollout resume " + name +
                                   "  # once an operator has created it again\n"));
}

// Two switches end in one order.
TEST_F(UnseenChange, AResumeOfWhatIsAbortedTooNamesTheOrder) {
  const std::string name = abort_present(true);
  const std::string order = name +
                            " is aborted and paused: first `gpu-sharing-operator rollout start default`, then "
                            "`gpu-sharing-operator rollout resume " +
                            name + "`\n";
  for (const std::string& which : {std::string(), name}) {
    EXPECT_EQ(run(Verb::resume, which), 2) << out.str();
    EXPECT_THAT(err.str(), testing::EndsWith(order));
  }
  EXPECT_EQ(spec_of(name)["paused"], true);
  options.dry_run = true;
  EXPECT_EQ(run(Verb::start), 0) << err.str();
  EXPECT_THAT(out.str(), testing::EndsWith("  " + order));
  EXPECT_THAT(out.str(), Not(HasSubstr("next: gpu-sharing-operator rollout resume")));
}

// Nodes failed, and their retry is requested: what the status of the rollout says has ended.
TEST_F(UnseenChange, ARequestedRetryOfFailedNodesIsShown) {
  record_gpu_1("v1-0");
  rollout("r", "Paused", target(), "any", "version: v1\n", "default", "MaxFailures");
  fail("gpu-1");
  sim.clock.run_for(std::chrono::seconds(1));
  EXPECT_EQ(run(Verb::status), 1);
  EXPECT_THAT(out.str(), HasSubstr("r: Stopped (MaxFailures)\n"));
  ASSERT_EQ(run(Verb::start), 0) << err.str();
  (void)run(Verb::status);
  EXPECT_THAT(out.str(), HasSubstr("r: Retry requested (recorded; the operator applies it)\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("  next: ")));
}

TEST_F(UnseenChange, APauseThatStopsNoNodeIsShown) {
  record_gpu_1(target());
  serve_gpu_1();
  ASSERT_EQ(run(Verb::pause, "policy/default"), 0) << err.str();
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_EQ(out.str(),
            "No rollout is in progress.\n"
            "policy default is paused (spec.rollout.paused): edits are not rolled out\n"
            "  next: gpu-sharing-operator rollout resume policy/default\n");
  ASSERT_EQ(run(Verb::resume, "policy/default"), 0) << err.str();
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_EQ(out.str(), "No rollout is in progress.\n");
}

TEST_F(UnseenChange, APauseOfTheConfigMapThatStopsNoNodeIsShownBesideThatOfAPolicy) {
  record_gpu_1(target());
  serve_gpu_1();
  merge("/api/v1/namespaces/gpu-operator/configmaps/mps-config",
        R"({"metadata":{"annotations":{"gpusharing.dev/paused":"true"}}})");
  ASSERT_EQ(run(Verb::pause, "policy/default"), 0) << err.str();
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_EQ(out.str(),
            "No rollout is in progress.\n"
            "ConfigMap gpu-operator/mps-config is paused (annotation gpusharing.dev/paused): edits are not rolled out\n"
            "  next: gpu-sharing-operator rollout resume\n"
            "policy default is paused (spec.rollout.paused): edits are not rolled out\n"
            "  next: gpu-sharing-operator rollout resume policy/default\n");
}

// The policies that govern its nodes roll edits out, whatever this one says.
TEST_F(UnseenChange, APausedPolicyThatGovernsNoNodeHoldsNoEdit) {
  record_gpu_1(target());
  const char* policies = "/apis/gpusharing.dev/v1alpha1/sharingpolicies";
  post(policies, policy("team-x", R"({"priority":5})"));
  post(policies, policy("team-y", R"({"priority":5,"rollout":{"paused":true}})"));
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("policy team-y is paused (spec.rollout.paused), and governs no node now: 1 of the "
                                   "selected nodes is governed by policy team-x: "));
  EXPECT_THAT(out.str(), Not(HasSubstr("edits are not rolled out")));
  std::ostringstream text;
  (void)sim.run(audit_cluster(&client, &sim.clock, {}, PlannerSettings(), &text, &err));
  EXPECT_THAT(text.str(), HasSubstr("info PolicyOverlap: another policy has the same spec.priority (5) and selects the "
                                    "same nodes; 1 of the selected nodes is governed by policy team-x: "));
}

TEST_F(UnseenChange, APausedPolicyWithoutANodeNamesTheStopOfADeletedPolicyThatKeepsItsNodes) {
  FleetRecord kept = record_with_gpu_1(target());
  kept.policies["t4"] = gone_policy("t4", R"({"mode":"Observe","priority":5})", sim.clock.now());
  record(print_head({kept}));
  post("/apis/gpusharing.dev/v1alpha1/sharingpolicies",
       policy("team-y", R"({"priority":3,"rollout":{"paused":true}})"));
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("policy team-y is paused (spec.rollout.paused), and governs no node now: 1 of the "
                                   "selected nodes is governed by policy t4: it is deleted, but its stop is still in "
                                   "effect (mode Observe), and its priority is higher\n"));
}

TEST_F(UnseenChange, ANodeThatADeletedPolicyGovernsIsShownWithThat) {
  FleetRecord kept = record_with_gpu_1(target());
  kept.policies["t4"] = gone_policy("t4", R"({"mode":"Observe","priority":5})", sim.clock.now());
  record(print_head({kept}));
  std::ostringstream text;
  const k8s::ObjectKey lease{"gpu-sharing-operator", "gpu-sharing-operator"};
  (void)sim.run(status_on_cluster(&client, &sim.clock, OutputForm::text, {}, PlannerSettings(), lease, &text, &err));
  EXPECT_THAT(text.str(), testing::ContainsRegex("gpu-1 +[^ ]+ +t4 [(]deleted[)] "));
}

TEST_F(UnseenChange, APolicyThatGovernsNoNodeNamesThePolicyThatGovernsItsNodes) {
  record_gpu_1(target());
  post("/apis/gpusharing.dev/v1alpha1/sharingpolicies", policy("team", R"({"priority":5})"));
  EXPECT_EQ(run(Verb::status, "policy/default"), 2) << out.str();
  const std::string why = "1 of the selected nodes is governed by policy team: its priority is higher";
  EXPECT_THAT(err.str(), HasSubstr("policy default has no SharingRollout; `rollout history` lists all SharingRollouts. "
                                   "It governs no node: " +
                                   why));
  NodeFilter only;
  only.policies.insert("default");
  std::ostringstream text;
  const k8s::ObjectKey lease{"gpu-sharing-operator", "gpu-sharing-operator"};
  (void)sim.run(status_on_cluster(&client, &sim.clock, OutputForm::text, only, PlannerSettings(), lease, &text, &err));
  EXPECT_THAT(text.str(),
              HasSubstr("No node matches --state, --policy and --selector.\npolicy default: " + why + "\n"));
}

// Where else a person looks while nothing is rolled out.
TEST_F(UnseenChange, APauseThatStopsNoNodeIsNamedByTheOtherLooksToo) {
  record_gpu_1(target());
  const std::string said =
      "the policy is paused (spec.rollout.paused): edits are not rolled out. To resume: `gpu-sharing-operator rollout "
      "resume policy/default`";
  const auto looks = [&] {
    std::ostringstream text;
    const k8s::ObjectKey lease{"gpu-sharing-operator", "gpu-sharing-operator"};
    CheckOptions check;
    check.timeout = std::chrono::seconds(1);
    (void)sim.run(status_on_cluster(&client, &sim.clock, OutputForm::text, {}, PlannerSettings(), lease, &text, &err));
    std::vector<std::string> texts{text.str()};
    text.str("");
    (void)sim.run(audit_cluster(&client, &sim.clock, {}, PlannerSettings(), &text, &err));
    texts.push_back(text.str());
    text.str("");
    (void)sim.run(check_on_cluster(&client, &sim.clock, Options(), check, &text, &err));
    texts.push_back(text.str());
    return texts;
  };
  for (const std::string& text : looks()) EXPECT_THAT(text, Not(HasSubstr(said)));
  ASSERT_EQ(run(Verb::pause, "policy/default"), 0) << err.str();
  for (const std::string& text : looks()) EXPECT_THAT(text, HasSubstr(said));
  EXPECT_THAT(looks().back(), HasSubstr("note    SharingPolicy default: "));
  merge("/api/v1/namespaces/gpu-operator/configmaps/mps-config",
        R"({"metadata":{"annotations":{"gpusharing.dev/paused":"true"}}})");
  for (const std::string& text : looks())
    EXPECT_THAT(text, HasSubstr("the ConfigMap is paused (annotation gpusharing.dev/paused): edits are not rolled out. "
                                "To resume: `gpu-sharing-operator rollout resume`"));
  EXPECT_THAT(looks().back(), HasSubstr("note    ConfigMap gpu-operator/mps-config: "));
}

// The nodes that it has left in a change go on with the revision that took its place.
TEST_F(UnseenChange, ASupersededRolloutCountsNoNodeInProgress) {
  rollout("r", "Superseded", "v1-2");
  EXPECT_EQ(run(Verb::status, "r"), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("2/4 up to date, 0 in progress, 0 pending"));
}

TEST_F(UnseenChange, NodesInAChangeAreNoMissingRollout) {
  record_gpu_1("v1-0");
  test::ChangeWords change;
  change.to = target();
  merge("/api/v1/nodes/gpu-1", Json{{"metadata", {{"annotations", test::write_change(change)}}}}.dump());
  rollout("r", "Superseded", "v1-2");
  progressing("OutsideWindow", "the next maintenance window opens at 22:00");
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("gpu-1"));
  EXPECT_THAT(out.str(), Not(HasSubstr("No rollout is in progress")));
}

// A wrong edit need not wait for the window either.
TEST_F(UnseenChange, AnEditThatWaitsForAWindowIsShownWithTheWayBack) {
  const std::string undo = "  next: gpu-sharing-operator rollout undo --dry-run  # to go back";
  progressing("OutsideWindow", "the next maintenance window opens at 22:00");
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_THAT(out.str(), Not(HasSubstr(undo))) << "no earlier text is on record";
  record_an_earlier_text();
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr(undo + ", if the edit that waits is wrong\n"));
}

// The status is older than what the nodes show.
TEST_F(UnseenChange, TheCountsAreThoseOfTheNodesThatAreNamed) {
  record_gpu_1("v1-0");
  test::ChangeWords change;
  change.to = target();
  merge("/api/v1/nodes/gpu-1", Json{{"metadata", {{"annotations", test::write_change(change)}}}}.dump());
  rollout("r", "Progressing", target());
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status",
        R"({"status":{"counts":{"total":4,"updated":2,"inProgress":2,"pending":0}}})");
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("0/1 up to date, 1 in progress, 0 pending"));
}

}  // namespace
}  // namespace gso::rollout_unseen_test
