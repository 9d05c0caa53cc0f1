// `rollout status`: what it says about rollouts and waiting policies, and its exit status.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/commands/status.h"
#include "reconcilers/cluster/record_store.h"
#include "reconcilers/model/json_access.h"
#include "tests/controller/commands/rollout_commands.h"

namespace gso::rollout_status_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using Verb = RolloutOptions::Verb;
using Json = nlohmann::json;

// A switch that a person has set shows at once: the status follows when an operator writes it.
TEST_F(RolloutCommand, AStopThatNoOperatorHasAppliedYetIsShownAsRecorded) {
  rollout("r", "Progressing", "v1-2");
  EXPECT_EQ(run(Verb::pause), 0) << err.str();
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_THAT(out.str(), testing::StartsWith("r: Paused (recorded; the operator applies it)\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("it is so"))) << "what was said before the stop might name the next start";
  EXPECT_THAT(out.str(), Not(HasSubstr("Running ")));
  EXPECT_THAT(out.str(),
              HasSubstr("  next: gpu-sharing-operator rollout resume r  # continues to v1-2; the pause does not "
                        "stop a rollout that an edit or an undo starts\n"));
  sim.clock.run_for(std::chrono::hours(2));
  EXPECT_EQ(run(Verb::status), 1);
  EXPECT_THAT(out.str(), HasSubstr("r: Paused (recorded; an operator applies it)\n"));
  EXPECT_EQ(run(Verb::abort), 0) << err.str();
  EXPECT_EQ(run(Verb::status), 1);
  EXPECT_THAT(out.str(), HasSubstr("r: Aborted (recorded; an operator applies it)\n"));
  EXPECT_THAT(out.str(), HasSubstr("  next: gpu-sharing-operator rollout start default  # then, "));
}

TEST_F(RolloutCommand, APauseOfThePolicyIsShownAsRecordedToo) {
  rollout("r", "Progressing", "v1-2");
  EXPECT_EQ(run(Verb::pause, "policy/default"), 0) << err.str();
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_THAT(out.str(), testing::StartsWith("r: Paused (recorded; the operator applies it)\n"));
  EXPECT_THAT(out.str(), HasSubstr("  next: gpu-sharing-operator rollout resume policy/default\n"));
}

TEST_F(RolloutCommand, StatusShowsWhatIsUnderWayAndEndsWithOneWhereItWentWrong) {
  EXPECT_EQ(run(Verb::status), 0);
  EXPECT_THAT(out.str(), HasSubstr("No rollout is in progress."));
  rollout("r", "Progressing", "v1-2");
  EXPECT_EQ(run(Verb::status), 0);
  EXPECT_THAT(out.str(), HasSubstr("r: Progressing"));
  EXPECT_THAT(out.str(), HasSubstr("[############............] 2/4 up to date, 1 in progress, 1 pending"));
  rollout("s", "Paused", "v1-3", "other", "", "default", "MaxFailures");
  EXPECT_EQ(run(Verb::status), 1);
  EXPECT_THAT(out.str(), HasSubstr("MaxFailures: it is so"));
  options.json = true;
  EXPECT_EQ(run(Verb::status, "s"), 1);
  const Json document = Json::parse(out.str());
  ASSERT_EQ(document["rollouts"].size(), 1U);
  EXPECT_EQ(document["rollouts"][0]["counts"]["updated"], 2);
}

// Else a resume seems to be all that it needs.
TEST_F(RolloutCommand, APauseHidesNoFailureThatStopsTheRollout) {
  record_gpu_1("v1-0");
  rollout("r", "Paused", target(), "any", "version: v1\n", "default", "Paused");
  EXPECT_EQ(run(Verb::status, "r"), 0) << out.str();
  EXPECT_THAT(out.str(), Not(HasSubstr("MaxFailures")));
  fail("gpu-1");
  for (const char* name : {"r", "policy/default", ""}) {
    EXPECT_EQ(run(Verb::status, name), 1) << name;
    EXPECT_THAT(out.str(), HasSubstr("  Paused: it is so\n  MaxFailures: 1 node (gpu-1) failed in the canary\n"));
    EXPECT_THAT(out.str(), HasSubstr("  next: gpu-sharing-operator rollout start default"));
  }
}

// A rollout can end while a node is left that failed and does not count: nothing else names it.
TEST_F(RolloutCommand, ANodeThatFailedAndIsLeftAfterItsRolloutIsNamedWithExitStatusOne) {
  record_gpu_1("v1-0");
  rollout("r", "Completed", target());
  fail("gpu-1", false);
  merge("/api/v1/nodes/gpu-1", R"({"metadata":{"annotations":{"gpusharing.dev/message":"no GPU after 10m"}}})");
  const std::string said =
      "policy default: 1 node failed, and is not tried again\n"
      "  NODE    STATE    REASON               MESSAGE\n"
      "  gpu-1   Failed   VerificationFailed   no GPU after 10m; not counted for maxFailures: it was out of service "
      "(cordoned, failed or without GPUs) before its change\n"
      "  next: gpu-sharing-operator explain gpu-1\n"
      "  next: gpu-sharing-operator rollout start default  # retries all failed nodes, once the cause is fixed\n";
  EXPECT_EQ(run(Verb::status), 1) << err.str();
  EXPECT_EQ(out.str(), "No rollout is in progress.\n" + said);
  EXPECT_EQ(run(Verb::status, "policy/default"), 1) << err.str();
  EXPECT_THAT(out.str(), testing::EndsWith(said));
  options.json = true;
  EXPECT_EQ(run(Verb::status), 1) << err.str();
  const Json failed = Json::parse(out.str())["failed"];
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_EQ(failed[0]["policy"], "default");
  EXPECT_EQ(failed[0]["nodes"][0]["name"], "gpu-1");
  EXPECT_EQ(failed[0]["next"].size(), 2U);
}

// Its counts are those of its end: a full bar beside a broken node says nothing of now.
TEST_F(RolloutCommand, ACompletedRolloutSaysWhichOfItsNodesAreNotUpToDateNow) {
  record_gpu_1("v1-0");
  rollout("r", "Completed", target(), "any", "version: v1\n", "default", "Completed");
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status",
        R"({"status":{"counts":{"total":1,"updated":1,"inProgress":0,"pending":0}}})");
  const auto status_of_nodes = [&] {
    const k8s::ObjectKey lease{"gpu-sharing-operator", "gpu-sharing-operator"};
    out.str("");
    (void)sim.run(
        status_on_cluster(&client, &sim.clock, OutputForm::text, NodeFilter(), PlannerSettings(), lease, &out, &err));
    return out.str();
  };
  fail("gpu-1");
  EXPECT_THAT(status_of_nodes(), HasSubstr("] 1/1; now 0/1 up to date, 1 failed\n"));
  (void)run(Verb::status, "r");
  EXPECT_THAT(out.str(), HasSubstr("] 1/1 up to date, 0 in progress, 0 pending, 0 blocked, 0 failed; now 0/1 up to "
                                   "date, 1 failed\n"));
  // Its revision is not what its nodes should run.
  merge("/api/v1/namespaces/gpu-operator/configmaps/mps-config", R"({"data":{"any":"version: v1\n"}})");
  EXPECT_THAT(status_of_nodes(), Not(HasSubstr("; now ")));
}

// Regression: all that it said was that no rollout is in progress.
TEST_F(RolloutCommand, ANodeThatDriftsAfterItsRolloutIsNamedWithTheNextStep) {
  record_gpu_1(target());  // And no pod of the plugin runs on it.
  const std::string said =
      "node gpu-1 does not show its profile: a pod of the plugin, GFD or MPS is missing or not Ready\n"
      "  next: gpu-sharing-operator explain gpu-1\n";
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_EQ(out.str(), "No rollout is in progress.\n" + said);
  rollout("r", "Completed", target(), "any", "version: v1\n", "default", "Completed");
  for (const char* name : {"r", "policy/default"}) {
    EXPECT_EQ(run(Verb::status, name), 0) << err.str();
    EXPECT_THAT(out.str(), testing::EndsWith(said)) << name;
  }
  serve_gpu_1();
  EXPECT_EQ(run(Verb::status, "r"), 0) << err.str();
  EXPECT_THAT(out.str(), Not(HasSubstr("explain gpu-1")));
}

// Regression: the command was on the line of the count, behind a line end that was printed as text.
TEST_F(RolloutCommand, DriftingNodesBeyondThoseThatAreListedAreCountedWithTheNextStep) {
  FleetRecord kept = record_with_gpu_1(target());
  const std::string uid = get("/api/v1/nodes/gpu-1")["metadata"]["uid"];
  const MachineRecord gpu_1 = *kept.machines.find(machine_id(uid));
  for (int i = 2; i <= 22; ++i) {
    const std::string name = fmt::format("gpu-{}", i);
    post_node(name, "True");
    const std::string other = get("/api/v1/nodes/" + name)["metadata"]["uid"];
    kept.machines.set(machine_id(other), gpu_1);
  }
  record(print_head({kept}));
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_THAT(out.str(), testing::EndsWith("\n2 further nodes drift as well\n  next: gpu-sharing-operator audit\n"));
}

// While the rollout goes on, its table says why the failure does not stop it.
TEST_F(RolloutCommand, AFailedNodeThatDoesNotCountSaysSoBesideItsMessage) {
  record_gpu_1("v1-0");
  rollout("r", "Progressing", target());
  const Json node{{"name", "gpu-1"}, {"state", "Failed"}, {"reason", "VerificationFailed"}, {"message", "no GPU"}};
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status",
        Json{{"status", {{"nodes", Json::array({node})}}}}.dump());
  fail("gpu-1", false);
  (void)run(Verb::status);
  EXPECT_THAT(out.str(), HasSubstr("  no GPU; not counted for maxFailures: it was out of service (cordoned, failed or "
                                   "without GPUs) before its change\n"));
  fail("gpu-1");
  (void)run(Verb::status);
  EXPECT_THAT(out.str(), HasSubstr("  no GPU\n"));
}

TEST_F(RolloutCommand, AChangeThatHasNoRolloutYetSaysWhatItWaitsFor) {
  const char* path = "/apis/gpusharing.dev/v1alpha1/sharingpolicies/default/status";
  const auto progressing = [&](const char* holds, const char* reason, const char* message) {
    const Json condition{{"type", "Progressing"},
                         {"status", holds},
                         {"reason", reason},
                         {"message", message},
                         {"lastTransitionTime", "2026-01-01T00:00:00Z"}};
    const Json held{{"reason", "Held"}, {"count", 3}, {"nodes", {"gpu-1"}}, {"message", "carries a hold"}};
    const Json status{{"conditions", Json::array({condition})}, {"blocked", Json::array({held})}};
    merge(path, Json{{"status", status}}.dump());
  };
  progressing("False", "OutsideWindow", "key any: the next maintenance window opens at 22:00");
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_EQ(out.str(),
            "No rollout is in progress.\n"
            "policy default waits: OutsideWindow: key any: the next maintenance window opens at 22:00\n"
            "  next: kubectl edit sharingpolicies.gpusharing.dev default  # spec.rollout.maintenanceWindows, to start "
            "nodes sooner; "
            "otherwise wait\n"
            "policy default waits: Held (gpu-1 and 2 more): carries a hold\n");
  EXPECT_EQ(run(Verb::status, "policy/default"), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("waits: OutsideWindow"));
  RolloutOptions as_json;
  as_json.verb = Verb::status;
  as_json.json = true;
  EXPECT_EQ(run_with(as_json), 0);
  EXPECT_EQ(Json::parse(out.str())["waiting"][0]["reason"], "OutsideWindow");
  EXPECT_EQ(Json::parse(out.str())["waiting"][1]["nodes"], Json::array({"gpu-1"}));
  rollout("r", "Progressing", "v1-2");
  EXPECT_EQ(run(Verb::status), 0);
  EXPECT_THAT(out.str(), Not(HasSubstr("waits"))) << "the rollout says it";
}

TEST_F(RolloutCommand, APolicyWithNothingToDoWaitsForNothing) {
  const Json settled{{"type", "Progressing"},
                     {"status", "False"},
                     {"reason", "Settled"},
                     {"message", "nothing is being changed"},
                     {"lastTransitionTime", "2026-01-01T00:00:00Z"}};
  merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default/status",
        Json{{"status", {{"conditions", Json::array({settled})}}}}.dump());
  EXPECT_EQ(run(Verb::status), 0);
  EXPECT_EQ(out.str(), "No rollout is in progress.\n");
  EXPECT_EQ(run(Verb::status, "policy/default"), 2);
  EXPECT_THAT(err.str(), HasSubstr("policy default has no SharingRollout"));
}

TEST_F(RolloutCommand, ARolloutOfATemplateNamesItsDaemonSetAndIsNotUndone) {
  post("/apis/gpusharing.dev/v1alpha1/sharingrollouts",
       R"({"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingRollout","metadata":{"name":"default-mps-1"},
           "spec":{"policy":"default","daemonSet":"gso/mps","key":"","toRevision":"7c9d6b8f5"}})");
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_THAT(out.str(),
              HasSubstr("  Rolling out the template of DaemonSet gso/mps to 7c9d6b8f5 under policy default\n"));
  RolloutOptions as_json;
  as_json.verb = Verb::status;
  as_json.json = true;
  EXPECT_EQ(run_with(as_json), 0);
  const Json shown = Json::parse(out.str())["rollouts"][0];
  EXPECT_EQ(shown["daemonSet"], "gso/mps");
  EXPECT_EQ(shown["configMap"], "");
  EXPECT_EQ(run(Verb::undo, "default-mps-1"), 2);
  EXPECT_THAT(err.str(), HasSubstr("rollout default-mps-1 is of the template of DaemonSet gso/mps: go back with `helm "
                                   "rollback`"));
  EXPECT_EQ(run(Verb::undo), 2) << "no other rollout is there to undo";
  EXPECT_EQ(run(Verb::pause, "default-mps-1"), 0) << err.str();
  EXPECT_EQ(spec_of("default-mps-1")["paused"], true);
}

TEST_F(RolloutCommand, NoTimeIsGivenWhereWorkloadsDecide) {
  rollout("r", "Progressing", "v1-2");
  merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default/status",
        R"({"status":{"currentRollout":"r","estimatedCompletion":"2026-01-01T01:00:00Z"}})");
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_THAT(out.str(), testing::ContainsRegex("  Running ([0-9]+m)?[0-9]+s, ETA [0-9]+m\n"));
  merge(
      "/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status",
      R"({"status":{"nodes":[{"name":"gpu-1","state":"Waiting","reason":"WaitingForWorkloads","message":"team/job"}]}})");
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_THAT(out.str(), testing::ContainsRegex("  Running ([0-9]+m)?[0-9]+s, waiting for workloads on gpu-1\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("ETA")));
  options.json = true;
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_EQ(Json::parse(out.str())["rollouts"][0]["estimatedCompletion"], "");
}

// A SharingRollout says Waiting of it: the table of `status` has no such state.
TEST_F(RolloutCommand, ANodeHasTheStateThatTheTableOfStatusShows) {
  record(print_head({edit_behind_pods_of({"gpu-1"})}));
  rollout("r", "Progressing", target());
  merge(
      "/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status",
      R"({"status":{"nodes":[{"name":"gpu-1","state":"Waiting","reason":"WaitingForWorkloads","message":"team/job"}]}})");
  (void)run(Verb::status, "r");
  EXPECT_THAT(out.str(), testing::ContainsRegex("\n  gpu-1 +Pending +WaitingForWorkloads +team/job\n"));
  options.json = true;
  (void)run(Verb::status, "r");
  EXPECT_EQ(Json::parse(out.str())["rollouts"][0]["nodes"][0]["state"], "Waiting") << "as the object has it";
}

// A SharingRollout says Failed of it as long as no operator has looked again.
TEST_F(RolloutCommand, ANodeThatFailedAndIsBlockedByNowIsBlocked) {
  record_gpu_1(target());
  rollout("r", "Progressing", target());
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status",
        R"({"status":{"nodes":[{"name":"gpu-1","state":"Failed","reason":"VerificationFailed","message":"no GPU"}]}})");
  (void)run(Verb::status, "r");
  EXPECT_THAT(out.str(), testing::ContainsRegex("\n  gpu-1 +Failed +VerificationFailed +no GPU\n"));
  merge("/api/v1/namespaces/gpu-operator/configmaps/mps-config", R"({"data":{"any":"version: v7\n"}})");
  (void)run(Verb::status, "r");
  EXPECT_THAT(out.str(),
              testing::ContainsRegex("\n  gpu-1 +Blocked +ConfigInvalid +.*any.*; its change failed: no GPU\n"));
}

TEST_F(RolloutCommand, APolicyThatSoaksWithoutARolloutSaysWhatItWaitsFor) {
  const char* path = "/apis/gpusharing.dev/v1alpha1/sharingpolicies/default/status";
  const Json condition{{"type", "Progressing"},
                       {"status", "True"},
                       {"reason", "RollingOut"},
                       {"message", "the canary gpu-1 is verified and soaks for 1h0m0s"},
                       {"lastTransitionTime", "2026-01-01T00:00:00Z"}};
  Json status{{"conditions", Json::array({condition})}, {"nodes", {{"pending", 3}}}};
  merge(path, Json{{"status", status}}.dump());
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_EQ(out.str(),
            "policy default waits: the canary gpu-1 is verified and soaks for 1h0m0s\n"
            "  to stop it: gpu-sharing-operator rollout pause policy/default\n");
  status["nodes"]["pending"] = 0;
  merge(path, Json{{"status", status}}.dump());
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_EQ(out.str(), "No rollout is in progress.\n") << "no node waits";
  status["nodes"]["pending"] = 3;
  merge(path, Json{{"status", status}}.dump());
  sim.clock.run_for(std::chrono::hours(2));
  (void)run(Verb::status);
  EXPECT_THAT(out.str(), HasSubstr("policy default waits: last reported: the canary gpu-1 is verified and soaks for "
                                   "1h0m0s; no node starts until an operator runs\n"));
}

TEST_F(RolloutCommand, AnAbortedRolloutIsCalledAborted) {
  rollout("r", "Failed", "v1-2", "any", "version: v1\n", "default", "Aborted");
  EXPECT_EQ(run(Verb::status, "r"), 1) << "nothing continues before somebody acts";
  EXPECT_THAT(out.str(), HasSubstr("r: Aborted\n"));
  EXPECT_EQ(run(Verb::history), 0);
  EXPECT_THAT(out.str(), testing::ContainsRegex("v1-2 +- +Aborted"));
  EXPECT_EQ(run(Verb::pause), 2);
  EXPECT_THAT(err.str(), HasSubstr("r (Aborted)"));
  options.json = true;
  EXPECT_EQ(run(Verb::status, "r"), 1);
  EXPECT_EQ(Json::parse(out.str())["rollouts"][0]["phase"], "Failed") << "as the object has it";
  EXPECT_EQ(Json::parse(out.str())["rollouts"][0]["reason"], "Aborted");
}

TEST_F(RolloutCommand, StatusSaysFirstThatNoOperatorRunsAndForetellsNothingThen) {
  rollout("r", "Progressing", "v1-2");
  const std::string end = k8s::format_time(sim.clock.now() + std::chrono::hours(5));
  merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default/status",
        Json{{"status", {{"currentRollout", "r"}, {"estimatedCompletion", end}}}}.dump());
  EXPECT_EQ(run(Verb::status), 0);
  EXPECT_THAT(out.str(), testing::StartsWith("r: Progressing"));
  EXPECT_THAT(out.str(), HasSubstr("ETA"));
  sim.clock.run_for(std::chrono::hours(2));
  EXPECT_EQ(run(Verb::status), 1) << "nothing goes on until one runs, as for `status`";
  EXPECT_THAT(out.str(), testing::StartsWith("No operator is running: pod-1 has not renewed the Lease since "));
  EXPECT_THAT(out.str(), HasSubstr("  Last reported: RollingOut: it is so; no node starts until an operator runs\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("Running ")));
  EXPECT_THAT(out.str(), Not(HasSubstr("ETA")));
  options.json = true;
  EXPECT_EQ(run(Verb::status), 1);
  EXPECT_THAT(text_at(Json::parse(out.str()), "operator"), HasSubstr("pod-1 has not renewed"));
  EXPECT_EQ(Json::parse(out.str())["rollouts"][0]["estimatedCompletion"], "");
  options.json = false;
  (void)send(k8s::Method::del, std::string(kLeases) + "/gpu-sharing-operator", "", "");
  EXPECT_EQ(run(Verb::status), 0);
  EXPECT_THAT(out.str(), testing::StartsWith("No operator was ever seen in namespace gpu-sharing-operator: Lease "
                                             "gpu-sharing-operator/gpu-sharing-operator does not exist"));
  EXPECT_THAT(out.str(), Not(HasSubstr("no node starts"))) << "one can run in another namespace";
}

TEST_F(RolloutCommand, StatusNamesAnInvalidTextBeforeAnyStatusDoes) {
  record_gpu_1(target());
  EXPECT_EQ(run(Verb::status), 0) << out.str();
  merge("/api/v1/namespaces/gpu-operator/configmaps/mps-config", R"({"data":{"any":"version: v7\n"}})");
  EXPECT_EQ(run(Verb::status), 1) << err.str();
  EXPECT_THAT(out.str(),
              testing::ContainsRegex("policy default waits: ConfigInvalid \\(gpu-1\\): .*any.*\n"
                                     "  next: kubectl edit configmap mps-config --namespace gpu-operator\n"));
}

// A deleted policy has no status: its stop is in the operator's record.
TEST_F(RolloutCommand, StatusNamesAPolicyThatIsGoneAndStillStopsItsNodes) {
  FleetRecord kept = edit_behind_pods_of({"gpu-1"});
  kept.policies["research"] = gone_policy("research", R"({"priority":10,"rollout":{"paused":true}})", sim.clock.now());
  kept.policies["idle"] = gone_policy("idle", R"({"priority":-10,"rollout":{"paused":true}})", sim.clock.now());
  record(print_head({kept}));
  for (const char* name : {"", "policy/research"}) {
    EXPECT_EQ(run(Verb::status, name), 0) << err.str();
    EXPECT_THAT(
        out.str(),
        HasSubstr("policy research waits: PolicyGone: SharingPolicy research no longer exists, and its "
                  "stop (paused) still applies\n  next: kubectl annotate configmap --namespace "
                  "gpu-sharing-operator gpu-sharing-operator-state --overwrite gpusharing.dev/forget-policies="));
    EXPECT_THAT(
        out.str(),
        HasSubstr("  # ends the stops of all deleted policies; gpu-1 then follows policy default (mode Enforce), "
                  "which starts pending changes there without asking; to end this one alone, create "
                  "SharingPolicy research again\n"));
    EXPECT_THAT(out.str(), Not(HasSubstr("idle"))) << "no node waits for it";
  }
  EXPECT_EQ(run(Verb::status, "policy/default"), 2) << out.str();
  kept.policies.erase("research");
  (void)send(k8s::Method::del, "/api/v1/namespaces/gpu-sharing-operator/configmaps/gpu-sharing-operator-state", "", "");
  record(print_head({kept}));
  (void)run(Verb::status);
  EXPECT_THAT(out.str(), Not(HasSubstr("PolicyGone")));
}

// The next edit will wait for it.
TEST_F(RolloutCommand, StatusNamesThePolicyThatIsGoneWhoseStopKeepsNoNodeYet) {
  FleetRecord kept = record_with_gpu_1(target());
  serve_gpu_1();
  kept.policies["research"] = gone_policy("research", R"({"priority":10,"rollout":{"paused":true}})", sim.clock.now());
  record(print_head({kept}));
  for (const char* name : {"", "policy/research"}) {
    EXPECT_EQ(run(Verb::status, name), 0) << err.str();
    EXPECT_THAT(out.str(), HasSubstr("policy research: SharingPolicy research no longer exists, and its stop "
                                     "(paused) still applies: edits are not rolled out to its 1 node\n  next: kubectl "
                                     "annotate configmap --namespace gpu-sharing-operator "));
  }
}

// One stop has one way out, that of the policy, and it is printed once.
TEST_F(RolloutCommand, StatusOfARolloutThatAwaitsTheApprovalOfAPolicyThatIsGoneNamesOneWayOut) {
  FleetRecord kept = edit_behind_pods_of({"gpu-1"});
  kept.policies["research"] = gone_policy("research", R"({"priority":10,"mode":"Approve"})", sim.clock.now());
  record(print_head({kept}));
  rollout("r", "AwaitingApproval", target(), "any", "version: v1\n", "research", "AwaitingApproval");
  const std::string forget = "  next: kubectl annotate configmap --namespace gpu-sharing-operator ";
  for (const char* name : {"", "policy/research", "r"}) {
    EXPECT_EQ(run(Verb::status, name), 0) << err.str();
    const std::string said = out.str();
    EXPECT_THAT(said, testing::AllOf(HasSubstr("r: AwaitingApproval\n"), HasSubstr(forget))) << name;
    EXPECT_EQ(said.find(forget), said.rfind(forget)) << said;
    EXPECT_THAT(said, testing::AllOf(Not(HasSubstr("rollout approve")), Not(HasSubstr("next: gpu-sharing-operator"))));
  }
}

}  // namespace
}  // namespace gso::rollout_status_test
