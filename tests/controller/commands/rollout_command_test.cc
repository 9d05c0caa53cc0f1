// `rollout …`: which switch each verb turns, what it says, and its exit status.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reconcilers/cluster/profile_cache.h"
#include "reconcilers/cluster/record_text.h"
#include "reconcilers/model/json_access.h"
#include "tests/controller/commands/rollout_commands.h"

namespace gso {
namespace {

using testing::HasSubstr;
using testing::Not;
using Verb = RolloutOptions::Verb;
using Json = nlohmann::json;

TEST_F(RolloutCommand, PauseResumeApproveAndAbortEachTurnTheirSwitch) {
  rollout("r", "AwaitingApproval", "v1-2");
  EXPECT_EQ(run(Verb::approve), 0) << err.str();
  EXPECT_EQ(spec_of("r")["approved"], true);
  EXPECT_EQ(run(Verb::pause, "r"), 0) << err.str();
  EXPECT_EQ(spec_of("r")["paused"], true);
  EXPECT_EQ(run(Verb::resume), 0) << err.str();
  EXPECT_EQ(spec_of("r")["paused"], false);
  EXPECT_EQ(run(Verb::abort, "policy/default"), 0) << err.str();
  EXPECT_EQ(spec_of("r")["aborted"], true);
}

TEST_F(RolloutCommand, NothingThatFitsIsUsageAndSaysWhatThereIs) {
  EXPECT_EQ(run(Verb::pause), 2);
  EXPECT_THAT(err.str(), HasSubstr("no rollout can be paused. To block the next rollout: rollout pause policy/NAME"));
  rollout("done", "Completed", "v1-2");
  EXPECT_EQ(run(Verb::pause), 2);
  EXPECT_THAT(err.str(), HasSubstr("done (Completed)"));
  EXPECT_EQ(run(Verb::pause, "other"), 2);
  EXPECT_THAT(err.str(), HasSubstr("SharingRollout other does not exist"));
}

TEST_F(RolloutCommand, ARevisionThatHasComeBackIsUnderWayAndTheSwitchesOfItsOldRecordAreNotTurned) {
  rollout("r", "Paused", "v1-2", "any", "version: v1\n", "default", "MaxFailures");
  EXPECT_EQ(run(Verb::abort), 0) << err.str();
  Json status = get("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r")["status"];
  status["conditions"].push_back({{"type", "Current"},
                                  {"status", "False"},
                                  {"reason", "NewAttempt"},
                                  {"message", "a new SharingRollout replaces it"},
                                  {"lastTransitionTime", "2026-01-01T00:00:00Z"}});
  EXPECT_EQ(run(Verb::status), 0);
  EXPECT_THAT(out.str(), HasSubstr("r: Aborted (recorded; the operator applies it)\n"));
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status", Json{{"status", status}}.dump());
  EXPECT_EQ(run(Verb::status), 1) << "what failed before holds it";
  EXPECT_THAT(out.str(), HasSubstr("MaxFailures: it is so"));
  EXPECT_EQ(run(Verb::resume), 2);
  EXPECT_THAT(err.str(), HasSubstr("r (Paused)"));
  EXPECT_EQ(run(Verb::abort), 2);
}

// A switch that a person has set shows at once: the status follows when an operator writes it.
TEST_F(RolloutCommand, AStopThatNoOperatorHasAppliedYetIsShownAsRecorded) {
  rollout("r", "Progressing", "v1-2");
  EXPECT_EQ(run(Verb::pause), 0) << err.str();
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_THAT(out.str(), testing::StartsWith("r: Paused (recorded; the operator applies it)\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("it is so"))) << "what was said before the stop might name the next start";
  EXPECT_THAT(out.str(), Not(HasSubstr("Running ")));
  EXPECT_THAT(out.str(), HasSubstr("  next: gpu-sharing-operator rollout resume r\n"));
  sim.clock.run_for(std::chrono::hours(2));
  EXPECT_EQ(run(Verb::status), 1);
  EXPECT_THAT(out.str(), HasSubstr("r: Paused (recorded; an operator applies it)\n"));
  EXPECT_EQ(run(Verb::abort), 0) << err.str();
  EXPECT_EQ(run(Verb::status), 1);
  EXPECT_THAT(out.str(), HasSubstr("r: Aborted (recorded; an operator applies it)\n"));
  EXPECT_THAT(out.str(), HasSubstr("  next: gpu-sharing-operator rollout start default\n"));
}

TEST_F(RolloutCommand, APauseOfThePolicyIsShownAsRecordedToo) {
  rollout("r", "Progressing", "v1-2");
  EXPECT_EQ(run(Verb::pause, "policy/default"), 0) << err.str();
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_THAT(out.str(), testing::StartsWith("r: Paused (recorded; the operator applies it)\n"));
  EXPECT_THAT(out.str(), HasSubstr("  next: gpu-sharing-operator rollout resume policy/default\n"));
}

TEST_F(RolloutCommand, ASecondPauseFindsWhatItAsksFor) {
  rollout("r", "Progressing", "v1-2");
  EXPECT_EQ(run(Verb::pause), 0) << err.str();
  for (const char* name : {"", "r"}) {
    EXPECT_EQ(run(Verb::pause, name), 0) << err.str();
    EXPECT_EQ(out.str(), "r: already paused\n");
  }
  EXPECT_EQ(run(Verb::pause, "policy/default"), 0) << err.str();
  EXPECT_EQ(run(Verb::pause, "policy/default"), 0) << err.str();
  EXPECT_EQ(out.str(), "policy default: already paused\n");
}

// A wait that a person can end says how.
TEST_F(RolloutCommand, AWaitOfAPolicyNamesTheCommandThatEndsIt) {
  const struct {
    const char* holds;
    const char* reason;
    const char* message;
    const char* next;
  } rows[] = {
      {"False", "Paused", "spec.rollout.paused of the policy is set",
       "  next: gpu-sharing-operator rollout resume policy/default\n"},
      {"False", "ConfigInvalid", "key any: line 6: put a space after the colon",
       "  next: gpu-sharing-operator audit\n"},
      {"True", "RollingOut", "a01, a02 wait to start",
       "  to stop it: gpu-sharing-operator rollout pause policy/default\n"},
      {"False", "OutsideWindow", "the next maintenance window opens at 22:00", ""},
  };
  for (const auto& row : rows) {
    const Json condition{{"type", "Progressing"},
                         {"status", row.holds},
                         {"reason", row.reason},
                         {"message", row.message},
                         {"lastTransitionTime", "2026-01-01T00:00:00Z"}};
    const Json status{{"conditions", Json::array({condition})}, {"nodes", {{"pending", 2}}}};
    merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default/status", Json{{"status", status}}.dump());
    const bool paused = std::string(row.reason) == "Paused";
    merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default",
          Json{{"spec", {{"rollout", {{"paused", paused}}}}}}.dump());
    EXPECT_EQ(run(Verb::status), 0) << err.str();
    EXPECT_THAT(out.str(), testing::EndsWith(std::string(row.message) + "\n" + row.next));
  }
  EXPECT_EQ(run(Verb::pause, "policy/default"), 0) << err.str();
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_THAT(out.str(),
              HasSubstr("policy default waits: Paused: spec.rollout.paused of the policy is set (recorded; an "
                        "operator applies it)\n  next: gpu-sharing-operator rollout resume policy/default\n"));
}

TEST_F(RolloutCommand, SeveralAreNotGuessedAmong) {
  rollout("a", "Progressing", "v1-2");
  rollout("b", "Progressing", "v1-3", "other");
  EXPECT_EQ(run(Verb::pause), 2);
  EXPECT_THAT(err.str(), HasSubstr("several rollouts match: "));
  EXPECT_FALSE(spec_of("a").value("paused", false));
  options.all = true;
  EXPECT_EQ(run(Verb::pause), 0) << err.str();
  EXPECT_EQ(spec_of("a")["paused"], true);
  EXPECT_EQ(spec_of("b")["paused"], true);
}

TEST_F(RolloutCommand, APolicyIsPausedAsAWholeAndAResumeOfItsRolloutNamesThat) {
  rollout("r", "Progressing", "v1-2");
  EXPECT_EQ(run(Verb::pause, "policy/default"), 0) << err.str();
  EXPECT_EQ(get("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default")["spec"]["rollout"]["paused"], true);
  EXPECT_EQ(run(Verb::pause, "r"), 0) << err.str();
  EXPECT_EQ(run(Verb::resume, "r"), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("policy default is also paused. Resume it: rollout resume policy/default"));
}

// A misspelt policy must not look like one that is paused.
TEST_F(RolloutCommand, APolicyThatDoesNotExistIsRefusedByEachVerbWithThoseThatDo) {
  post("/apis/gpusharing.dev/v1alpha1/sharingpolicies", policy("research", "{}"));
  rollout("r", "Progressing", "v1-2");
  const auto policies = [&] { return get("/apis/gpusharing.dev/v1alpha1/sharingpolicies")["items"]; };
  const Json before = policies();
  for (const Verb verb :
       {Verb::status, Verb::history, Verb::start, Verb::pause, Verb::resume, Verb::approve, Verb::abort, Verb::undo}) {
    EXPECT_EQ(run(verb, "policy/nosuch"), 2) << out.str();
    EXPECT_THAT(err.str(), HasSubstr("SharingPolicy nosuch does not exist; found default, research\n"));
    EXPECT_EQ(out.str(), "");
  }
  EXPECT_EQ(run(Verb::start, "nosuch"), 2);
  EXPECT_THAT(err.str(), HasSubstr("SharingPolicy nosuch does not exist; found default, research\n"));
  EXPECT_EQ(policies(), before);
  EXPECT_FALSE(spec_of("r").value("paused", false));
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
  EXPECT_EQ(out.str(), "policy default waits: the canary gpu-1 is verified and soaks for 1h0m0s\n");
  status["nodes"]["pending"] = 0;
  merge(path, Json{{"status", status}}.dump());
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_EQ(out.str(), "No rollout is in progress.\n") << "no node waits";
}

TEST_F(RolloutCommand, AnAbortedRolloutIsCalledAborted) {
  rollout("r", "Failed", "v1-2", "any", "version: v1\n", "default", "Aborted");
  EXPECT_EQ(run(Verb::status, "r"), 0) << "a person wanted it so";
  EXPECT_THAT(out.str(), HasSubstr("r: Aborted\n"));
  EXPECT_EQ(run(Verb::history), 0);
  EXPECT_THAT(out.str(), testing::ContainsRegex("v1-2 +Aborted"));
  EXPECT_EQ(run(Verb::pause), 2);
  EXPECT_THAT(err.str(), HasSubstr("r (Aborted)"));
  options.json = true;
  EXPECT_EQ(run(Verb::status, "r"), 0);
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
  EXPECT_THAT(out.str(), HasSubstr("  Last reported: RollingOut: it is so\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("Running ")));
  EXPECT_THAT(out.str(), Not(HasSubstr("ETA")));
  options.json = true;
  EXPECT_EQ(run(Verb::status), 1);
  EXPECT_THAT(text_at(Json::parse(out.str()), "operator"), HasSubstr("pod-1 has not renewed"));
  EXPECT_EQ(Json::parse(out.str())["rollouts"][0]["estimatedCompletion"], "");
  options.json = false;
  (void)send(k8s::Method::del, std::string(kLeases) + "/gpu-sharing-operator", "", "");
  EXPECT_EQ(run(Verb::status), 0);
  EXPECT_THAT(out.str(), testing::StartsWith(
                             "No operator is running: Lease gpu-sharing-operator/gpu-sharing-operator does not exist"));
}

// The command that shows a stop also says what ends it.
TEST_F(RolloutCommand, StatusPrintsTheWayOutOfEachStop) {
  const struct {
    const char* phase;
    const char* reason;
    const char* next;
  } rows[] = {
      {"Paused", "Paused", "  next: gpu-sharing-operator rollout resume\n"},
      {"AwaitingApproval", "AwaitingApproval",
       "  next: gpu-sharing-operator diff\n  next: gpu-sharing-operator rollout approve r\n"},
      {"Failed", "Aborted", "  next: gpu-sharing-operator rollout start default\n"},
      {"Progressing", "RollingOut", ""},
  };
  for (const auto& row : rows) {
    rollout("r", row.phase, "v1-2", "any", "version: v1\n", "default", row.reason);
    (void)run(Verb::status, "r");
    const std::string said = out.str();
    const std::size_t at = said.find("  next: ");
    EXPECT_EQ(at == std::string::npos ? "" : said.substr(at), row.next) << row.reason;
    (void)send(k8s::Method::del, "/apis/gpusharing.dev/v1alpha1/sharingrollouts/r", "", "");
  }
  rollout("r", "Paused", "v1-2", "any", "version: v1\n", "default", "Paused");
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r", R"({"spec":{"paused":true}})");
  (void)run(Verb::status, "r");
  EXPECT_THAT(out.str(), HasSubstr("  next: gpu-sharing-operator rollout resume r\n"));
  merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default", R"({"spec":{"rollout":{"paused":true}}})");
  (void)run(Verb::status, "r");
  EXPECT_THAT(out.str(), HasSubstr("  next: gpu-sharing-operator rollout resume policy/default\n"));
  options.json = true;
  (void)run(Verb::status, "r");
  EXPECT_EQ(Json::parse(out.str())["rollouts"][0]["next"][0], "gpu-sharing-operator rollout resume policy/default");
}

TEST_F(RolloutCommand, StatusPrintsWhatToTypeAboutANodeInTrouble) {
  const auto next_for = [&](const std::string& reason) {
    (void)send(k8s::Method::del, "/apis/gpusharing.dev/v1alpha1/sharingrollouts/r", "", "");
    rollout("r", "Progressing", "v1-2");
    const Json node{{"name", "gpu-1"}, {"state", "Waiting"}, {"reason", reason}, {"message", "so it is"}};
    merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status",
          Json{{"status", {{"nodes", Json::array({node})}}}}.dump());
    (void)run(Verb::status, "r");
    const std::size_t at = out.str().find("  next: ");
    return at == std::string::npos ? std::string() : out.str().substr(at);
  };
  EXPECT_EQ(next_for("PDBRefuses"), "  next: gpu-1: kubectl get poddisruptionbudgets --all-namespaces\n");
  EXPECT_EQ(next_for("WaitingForWorkloads"),
            "  next: gpu-1: kubectl get pods --all-namespaces --field-selector spec.nodeName=gpu-1\n");
  (void)plugin_pod();
  merge(
      "/api/v1/namespaces/gpu-operator/pods/plugin-1/status",
      R"({"status":{"phase":"Running","containerStatuses":[{"name":"nvidia-device-plugin","ready":false,"restartCount":3,
            "image":"i","imageID":"i","state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}})");
  EXPECT_EQ(
      next_for("VerificationFailed"),
      "  next: gpu-1: kubectl logs plugin-1 --namespace gpu-operator --container nvidia-device-plugin --previous\n");
  merge("/api/v1/nodes/gpu-1/status", R"({"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}})");
  EXPECT_EQ(next_for("NodesNotReady"), "  next: gpu-1: kubectl describe node gpu-1\n");
}

// The row "an idle node does not move" of docs/runbooks.md: which budget is full, also the cluster's, who holds it, and
// the setting to raise.
TEST_F(RolloutCommand, StatusOfAFullBudgetNamesItAndItsHoldersAndTheSettingToRaise) {
  const std::string edit = "kubectl edit sharingpolicies default\n";
  const std::string of_policy = "  next: to raise spec.rollout.maxUnavailable: " + edit;
  const std::string of_group = "  next: to raise spec.rollout.maxUnavailablePerGroup: " + edit;
  const std::string of_cluster =
      "  next: to raise cluster-max-unavailable: helm upgrade RELEASE CHART --namespace NAMESPACE "
      "--reset-then-reuse-values --set config.cluster-max-unavailable=VALUE\n";
  const struct {
    const char* message;
    std::string next;
  } rows[] = {
      {"no slot is free: a01, a02 hold 2 of 2 slots of policy default (maxUnavailable)", of_policy},
      {"no slot is free: a01 holds 1 of 1 slot of group A100 (maxUnavailablePerGroup)", of_group},
      {"no slot is free: a01 holds 1 of 1 slot of the cluster (--cluster-max-unavailable)", of_cluster},
      {"no slot is free: a01 holds 1 of 1 slot of policy default (maxUnavailable); also full: the cluster "
       "(--cluster-max-unavailable): a01, t04 hold 2 of 2 slots",
       of_policy + of_cluster},
      {"waits for the canary a01", ""},
  };
  const auto next_for = [&](const char* reason, const char* message) {
    rollout("r", "Progressing", "v1-2");
    const Json condition{{"type", "Ready"},
                         {"status", "False"},
                         {"reason", reason},
                         {"message", message},
                         {"lastTransitionTime", "2026-01-01T00:00:00Z"}};
    merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status",
          Json{{"status", {{"conditions", Json::array({condition})}}}}.dump());
    (void)run(Verb::status, "r");
    EXPECT_THAT(out.str(), HasSubstr(message));
    (void)send(k8s::Method::del, "/apis/gpusharing.dev/v1alpha1/sharingrollouts/r", "", "");
    const std::size_t at = out.str().find("  next: to raise ");
    return at == std::string::npos ? std::string() : out.str().substr(at);
  };
  for (const auto& row : rows) EXPECT_EQ(next_for("BudgetExhausted", row.message), row.next) << row.message;
  EXPECT_EQ(next_for("RollingOut", rows[0].message), "") << "nodes hold the slots of a wave that goes on";
}

TEST_F(RolloutCommand, StartShowsWithDryRunWhatItRetriesAndWritesNothing) {
  rollout("r", "Failed", "v1-2", "any", "version: v1\n", "default", "Aborted");
  merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default", R"({"spec":{"rollout":{"paused":true}}})");
  const Json before = get("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default");
  options.dry_run = true;
  EXPECT_EQ(run(Verb::start), 0) << err.str();
  EXPECT_EQ(get("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default"), before);
  EXPECT_EQ(get("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r")["metadata"]["name"], "r");
  EXPECT_THAT(out.str(), Not(HasSubstr("Retrying")));
  EXPECT_THAT(out.str(), HasSubstr("  key any waits (Paused): spec.rollout.paused of the policy is set\n"));
}

TEST_F(RolloutCommand, ASwitchThatNoOperatorReadsIsSetAndSaysSo) {
  rollout("r", "Progressing", "v1-2");
  EXPECT_EQ(run(Verb::pause), 0);
  EXPECT_EQ(err.str(), "");
  sim.clock.run_for(std::chrono::hours(2));
  EXPECT_EQ(run(Verb::resume), 0);
  EXPECT_THAT(err.str(), testing::StartsWith("No operator is running: pod-1 has not renewed the Lease since "));
}

TEST_F(RolloutCommand, HistoryIsNewestFirstAndARecordHasItsText) {
  rollout("old", "Completed", "v1-1", "any", "version: v1 # old\n");
  rollout("new", "Progressing", "v1-2");
  EXPECT_EQ(run(Verb::history), 0);
  EXPECT_LT(out.str().find("new "), out.str().find("old "));
  EXPECT_EQ(run(Verb::history, "old"), 0);
  EXPECT_THAT(out.str(), HasSubstr("version: v1 # old\n"));
}

TEST_F(RolloutCommand, HistoryIsInTheOrderInWhichTheyBegan) {
  rollout("made-first", "Completed", "v1-1");
  rollout("made-last", "Completed", "v1-2");
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/made-first/status",
        R"({"status":{"startedAt":"2026-02-01T00:00:00Z"}})");
  EXPECT_EQ(run(Verb::history), 0);
  EXPECT_LT(out.str().find("made-first"), out.str().find("made-last"));
}

TEST_F(RolloutCommand, StartSetsAnotherRetryAndForgetsWhatWasAborted) {
  rollout("r", "Progressing", "v1-2");
  EXPECT_EQ(run(Verb::abort), 0) << err.str();
  options.adopt = true;
  EXPECT_EQ(run(Verb::start), 2);
  EXPECT_THAT(err.str(), HasSubstr("no baseline"));
  FleetRecord kept;
  kept.recorded_at = *k8s::parse_rfc3339("2026-01-01T00:00:00Z");
  record(print_head({kept}));
  EXPECT_EQ(run(Verb::start), 0) << err.str();
  const Json annotations = get("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default")["metadata"]["annotations"];
  EXPECT_EQ(annotations["gpusharing.dev/adopt-drift"], "2026-01-01T00:00:00Z") << "of this baseline, and no later one";
  const std::string retry = annotations["gpusharing.dev/retry"];
  EXPECT_THAT(out.str(), HasSubstr("Deleted the aborted rollout record r"));
  EXPECT_EQ(get("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r")["kind"], "Status");
  sim.clock.run_for(std::chrono::seconds(1));
  EXPECT_EQ(run(Verb::start, "policy/default"), 0) << err.str();
  EXPECT_NE(
      get("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default")["metadata"]["annotations"]["gpusharing.dev/retry"],
      retry);
  EXPECT_EQ(run(Verb::start, "nobody"), 2);
}

TEST_F(RolloutCommand, AStartSaysThatAPauseBeforeTheAbortStays) {
  rollout("r", "Progressing", "v1-2");
  EXPECT_EQ(run(Verb::pause), 0) << err.str();
  EXPECT_EQ(run(Verb::abort), 0) << err.str();
  EXPECT_EQ(run(Verb::start), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("Deleted the aborted rollout record r\n"
                                   "  r is still paused: gpu-sharing-operator rollout resume r\n"));
}

TEST_F(RolloutCommand, AStartReportsFailuresOfWhatNodesShouldRunStill) {
  const auto failure = [](const std::string& revision) {
    return FleetRecord::Failure{
        {"default", "gpu-operator/mps-config", "any", revision, "", ""}, {{"gpu-1", MachineId{1}}}, false};
  };
  const std::string text = get("/api/v1/namespaces/gpu-operator/configmaps/mps-config")["data"]["any"];
  const std::string present = ProfileCache().compile(text)->revision;
  FleetRecord kept;
  kept.failures = {failure("v1-6"), failure(present)};
  record(print_head({kept}));
  EXPECT_EQ(run(Verb::start), 0) << err.str();
  EXPECT_THAT(out.str(), Not(HasSubstr("v1-6"))) << "another text stands there now";
  EXPECT_THAT(out.str(), HasSubstr(present + " of gpu-operator/mps-config key any, which failed on gpu-1"));
}

TEST_F(RolloutCommand, AResumeLiftsThePauseOfAConfigMapAndSaysWhatElseIsPaused) {
  const char* path = "/api/v1/namespaces/gpu-operator/configmaps/mps-config";
  merge(path, R"({"metadata":{"annotations":{"gpusharing.dev/paused":"true"}}})");
  EXPECT_EQ(run(Verb::resume, "policy/default"), 2) << "it was not paused";
  EXPECT_THAT(err.str(), HasSubstr("policy default is not paused by spec.rollout.paused; gpusharing.dev/paused=true "
                                   "is set on ConfigMap gpu-operator/mps-config; `rollout resume` without a name "
                                   "removes it"));
  EXPECT_EQ(run(Verb::resume), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("ConfigMap gpu-operator/mps-config: resumed"));
  EXPECT_FALSE(get(path)["metadata"].value("annotations", Json::object()).contains("gpusharing.dev/paused"));
  EXPECT_EQ(run(Verb::resume), 2);
}

// --- without our CRDs

TEST_F(OurClusterWithoutCrds, PauseAndResumeAreAnAnnotationOfTheConfigMap) {
  std::ostringstream out;
  std::ostringstream err;
  RolloutOptions options;
  options.verb = Verb::pause;
  EXPECT_EQ(sim.run(rollout_command(&client, &sim.clock, options, PlannerSettings(), "", &out, &err)), 0) << err.str();
  const char* path = "/api/v1/namespaces/gpu-operator/configmaps/mps-config";
  EXPECT_EQ(get(path)["metadata"]["annotations"]["gpusharing.dev/paused"], "true");
  options.verb = Verb::resume;
  EXPECT_EQ(sim.run(rollout_command(&client, &sim.clock, options, PlannerSettings(), "", &out, &err)), 0) << err.str();
  EXPECT_FALSE(get(path)["metadata"].value("annotations", Json::object()).contains("gpusharing.dev/paused"));
  options.verb = Verb::approve;
  EXPECT_EQ(sim.run(rollout_command(&client, &sim.clock, options, PlannerSettings(), "", &out, &err)), 2);
  EXPECT_THAT(err.str(), HasSubstr("the SharingPolicy/SharingRollout CRDs are not installed in this cluster"));
}

// A pause of a ConfigMap holds more than one policy: it is not set in its place.
TEST_F(OurClusterWithoutCrds, ANameIsRefusedBecauseOnlyConfigMapsCanBePaused) {
  const char* path = "/api/v1/namespaces/gpu-operator/configmaps/mps-config";
  const Json before = get(path);
  for (const char* name : {"policy/default", "policy/nosuch", "r"}) {
    for (const Verb verb : {Verb::pause, Verb::resume}) {
      std::ostringstream out;
      std::ostringstream err;
      RolloutOptions options;
      options.verb = verb;
      options.name = name;
      EXPECT_EQ(sim.run(rollout_command(&client, &sim.clock, options, PlannerSettings(), "", &out, &err)), 2);
      EXPECT_THAT(err.str(), HasSubstr("does not exist: the SharingPolicy/SharingRollout CRDs are not installed"));
      EXPECT_THAT(err.str(), HasSubstr("gpu-operator/mps-config"));
      EXPECT_EQ(out.str(), "");
    }
  }
  EXPECT_EQ(get(path), before);
}

}  // namespace
}  // namespace gso
