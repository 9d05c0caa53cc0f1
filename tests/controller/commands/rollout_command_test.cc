// `rollout …`: which switch each verb turns, what it says, and its exit status.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/commands/status.h"
#include "reconcilers/cluster/record_store.h"
#include "reconcilers/fleet/pass.h"
#include "tests/controller/commands/rollout_commands.h"

namespace gso::rollout_command_test {
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
  EXPECT_THAT(err.str(), HasSubstr("no rollout can be paused. To block the next rollout: "
                                   "gpu-sharing-operator rollout pause policy/default\n"));
  rollout("done", "Completed", "v1-2");
  EXPECT_EQ(run(Verb::pause), 2);
  EXPECT_THAT(err.str(), HasSubstr("done (Completed)"));
  EXPECT_EQ(run(Verb::pause, "other"), 2);
  EXPECT_THAT(err.str(), HasSubstr("SharingRollout other does not exist; `rollout history` lists all SharingRollouts"));
  EXPECT_EQ(run(Verb::pause, "default"), 2);
  EXPECT_THAT(err.str(), HasSubstr("SharingRollout default does not exist; the SharingPolicy is policy/default"));
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
  EXPECT_EQ(run(Verb::status), 1);
  EXPECT_THAT(out.str(), HasSubstr("r: Aborted (recorded; the operator applies it)\n"));
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status", Json{{"status", status}}.dump());
  EXPECT_EQ(run(Verb::status), 1) << "what failed before holds it";
  EXPECT_THAT(out.str(), HasSubstr("MaxFailures: it is so"));
  EXPECT_EQ(run(Verb::resume), 2);
  EXPECT_THAT(err.str(), HasSubstr("r (Stopped)"));
  EXPECT_EQ(run(Verb::abort), 2);
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

TEST_F(RolloutCommand, ASecondAbortFindsWhatItAsksForUnlessAnotherRevisionIsAboutToStart) {
  record(print_head({edit_behind_pods_of({"gpu-1"})}));
  const std::string r = rollout_name({"default", "gpu-operator/mps-config", "any"}, target());
  rollout(r, "Progressing", target());
  ASSERT_EQ(run(Verb::abort), 0) << err.str();
  for (const std::string& name : {std::string(), r}) {
    EXPECT_EQ(run(Verb::abort, name), 0) << err.str();
    EXPECT_EQ(out.str(), r + ": already aborted\n");
  }
  merge("/api/v1/namespaces/gpu-operator/configmaps/mps-config", R"({"data":{"any":"version: v1\n"}})");
  sim.clock.run_for(std::chrono::seconds(1));
  EXPECT_EQ(run(Verb::abort), 2) << out.str();
  EXPECT_THAT(err.str(), HasSubstr("To stop it: gpu-sharing-operator rollout pause policy/default\n"));
  EXPECT_EQ(run(Verb::abort, r), 2) << "it ended with the edit: " << out.str();
}

// In mode Enforce a rollout starts by itself: an approval of it would approve nothing.
TEST_F(RolloutCommand, ARolloutThatAwaitsNoApprovalIsNotApproved) {
  rollout("r", "", "v1-2");
  EXPECT_EQ(run(Verb::approve), 2) << out.str();
  EXPECT_THAT(err.str(), HasSubstr("no rollout waits for approval; found r (Starting)"));
  EXPECT_FALSE(spec_of("r").value("approved", false));
  merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default", R"({"spec":{"mode":"Approve"}})");
  EXPECT_EQ(run(Verb::approve), 0) << err.str();
  EXPECT_EQ(out.str(), "r: approved\n");
  EXPECT_EQ(run(Verb::approve), 0) << err.str();
  EXPECT_EQ(out.str(), "r: already approved\n");
}

// Between an edit and its SharingRollout, the policy is what a pause without a name can mean.
TEST_F(RolloutCommand, APauseInTheSettleWindowPausesTheOnlyPolicyThatIsAboutToStart) {
  record(print_head({edit_behind_pods_of({"gpu-1"})}));
  post("/apis/gpusharing.dev/v1alpha1/sharingpolicies", policy("research", R"({"priority":-10})"));
  EXPECT_EQ(run(Verb::abort), 2);
  EXPECT_THAT(err.str(), HasSubstr("To stop it: gpu-sharing-operator rollout pause policy/default\n"));
  EXPECT_EQ(run(Verb::pause), 0) << err.str();
  EXPECT_EQ(out.str(),
            "policy default: paused: no further node starts\n"
            "  to resume it: gpu-sharing-operator rollout resume policy/default\n");
  EXPECT_EQ(get("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default")["spec"]["rollout"]["paused"], true);
  const Json other = get("/apis/gpusharing.dev/v1alpha1/sharingpolicies/research")["spec"];
  EXPECT_FALSE(other.value("rollout", Json::object()).value("paused", false));
  EXPECT_EQ(run(Verb::pause), 0) << err.str();
  EXPECT_EQ(out.str(), "policy default: already paused\n");
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("policy default waits: Paused: spec.rollout.paused of the policy is set (recorded; "
                                   "an operator applies it)\n"
                                   "  next: gpu-sharing-operator rollout resume policy/default\n"));
}

TEST_F(RolloutCommand, APauseInTheSettleWindowOfSeveralPoliciesListsThem) {
  post("/api/v1/nodes", R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"gpu-2",
      "labels":{"nvidia.com/gpu.present":"true","nvidia.com/gpu.count":"2","team":"b"}},
      "status":{"capacity":{"nvidia.com/gpu":"4"},"allocatable":{"nvidia.com/gpu":"4"},
                "conditions":[{"type":"Ready","status":"True"}]}})");
  record(print_head({edit_behind_pods_of({"gpu-1", "gpu-2"})}));
  post("/apis/gpusharing.dev/v1alpha1/sharingpolicies",
       policy("research", R"({"priority":10,"nodeSelector":{"matchLabels":{"team":"b"}}})"));
  EXPECT_EQ(run(Verb::pause), 2) << out.str();
  EXPECT_THAT(err.str(), HasSubstr("To stop it: gpu-sharing-operator rollout pause policy/default, "
                                   "gpu-sharing-operator rollout pause policy/research\n"));
  options.all = true;
  EXPECT_EQ(run(Verb::pause), 0) << err.str();
  for (const char* name : {"default", "research"})
    EXPECT_EQ(get(std::string("/apis/gpusharing.dev/v1alpha1/sharingpolicies/") + name)["spec"]["rollout"]["paused"],
              true);
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
  EXPECT_THAT(out.str(), HasSubstr("policy default is also paused. Resume it: gpu-sharing-operator rollout resume "
                                   "policy/default"));
}

// As a `pause` without a name pauses it.
TEST_F(RolloutCommand, AResumeWithoutANameResumesTheOnlyPolicyThatIsPaused) {
  EXPECT_EQ(run(Verb::pause, "policy/default"), 0) << err.str();
  EXPECT_EQ(run(Verb::resume), 0) << err.str();
  EXPECT_EQ(out.str(), "policy default: resumed\n");
  EXPECT_EQ(get("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default")["spec"]["rollout"]["paused"], false);
  EXPECT_EQ(run(Verb::resume), 2) << "nothing is paused";
}

TEST_F(RolloutCommand, AResumeWithoutANameListsSeveralPoliciesThatArePaused) {
  post("/apis/gpusharing.dev/v1alpha1/sharingpolicies", policy("research", "{}"));
  for (const char* name : {"policy/default", "policy/research"}) EXPECT_EQ(run(Verb::pause, name), 0) << err.str();
  EXPECT_EQ(run(Verb::resume), 2) << out.str();
  EXPECT_THAT(err.str(), HasSubstr("no rollout is paused by spec.paused. Policies are paused. To resume them: "
                                   "gpu-sharing-operator rollout resume policy/default, "
                                   "gpu-sharing-operator rollout resume policy/research\n"));
  const auto is_paused = [this](const char* name) {
    return get(std::string("/apis/gpusharing.dev/v1alpha1/sharingpolicies/") + name)["spec"]["rollout"]["paused"];
  };
  EXPECT_EQ(is_paused("default"), true);
  options.all = true;
  EXPECT_EQ(run(Verb::resume), 0) << err.str();
  EXPECT_EQ(is_paused("default"), false);
  EXPECT_EQ(is_paused("research"), false);
}

TEST_F(RolloutCommand, StatusRefusesAPolicyThatDoesNotExistAndSuggestsOneThatDoes) {
  post("/apis/gpusharing.dev/v1alpha1/sharingpolicies", policy("research", "{}"));
  const auto status_of = [this](const std::string& name) {
    out.str("");
    err.str("");
    NodeFilter only;
    only.policies = {name};
    return sim.run(status_on_cluster(&client, &sim.clock, OutputForm::text, only, PlannerSettings(),
                                     {"gpu-sharing-operator", "gpu-sharing-operator"}, &out, &err));
  };
  EXPECT_EQ(status_of("reserch"), 2);
  EXPECT_EQ(out.str(), "");
  EXPECT_EQ(err.str(),
            "gpu-sharing-operator status: SharingPolicy reserch does not exist; found default, research; did you mean "
            "'research'?\n");
  EXPECT_EQ(status_of("research"), 0) << "it governs no node: " << err.str();
  EXPECT_THAT(out.str(), HasSubstr("No node matches"));
  EXPECT_EQ(run(Verb::pause, "policy/reserch"), 2);
  EXPECT_THAT(err.str(), HasSubstr("; did you mean 'research'?\n"));
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
  merge(path, R"({"metadata":{"annotations":{"gpusharing.dev/paused":"true"}}})");
  EXPECT_EQ(run(Verb::pause, "policy/default"), 0) << err.str();
  EXPECT_EQ(run(Verb::resume), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("ConfigMap gpu-operator/mps-config: resumed (gpusharing.dev/paused)\n  A policy is "
                                   "paused. To resume it: gpu-sharing-operator rollout resume policy/default\n"));
}

TEST_F(RolloutCommand, AResumeOfAConfigMapThatTwoPluginsMountIsSaidOnce) {
  std::string second = kPlugin;
  second.replace(second.find("nvidia-device-plugin-daemonset"), 30, "another");
  second.replace(second.find("\"matchLabels\":{\"app\":\"plugin\"}"), 30, "\"matchLabels\":{\"app\":\"another\"}");
  second.replace(second.find("\"labels\":{\"app\":\"plugin\"}"), 25, "\"labels\":{\"app\":\"another\"}");
  post("/apis/apps/v1/namespaces/gpu-operator/daemonsets", second);
  merge("/api/v1/namespaces/gpu-operator/configmaps/mps-config",
        R"({"metadata":{"annotations":{"gpusharing.dev/paused":"true"}}})");
  EXPECT_EQ(run(Verb::resume), 0) << err.str();
  EXPECT_EQ(out.str(), "ConfigMap gpu-operator/mps-config: resumed (gpusharing.dev/paused)\n");
}

TEST_F(RolloutCommand, AResumeOfThePolicyNamesItsRolloutThatIsPaused) {
  rollout("r", "Paused", "v1-2", "any", "version: v1\n", "default", "Paused");
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r", R"({"spec":{"paused":true}})");
  EXPECT_EQ(run(Verb::resume, "policy/default"), 2);
  EXPECT_THAT(err.str(), HasSubstr("policy default is not paused by spec.rollout.paused; its rollout r is paused: "
                                   "`gpu-sharing-operator rollout resume r`\n"));
  EXPECT_EQ(run(Verb::pause, "policy/default"), 0) << err.str();
  EXPECT_EQ(run(Verb::resume, "policy/default"), 0) << err.str();
  EXPECT_EQ(out.str(), "policy default: resumed\n  its rollout r is paused: `gpu-sharing-operator rollout resume r`\n");
}

TEST_F(RolloutCommand, AResumeDoesNotListWhatHasEndedBesideWhatHasNot) {
  rollout("done", "Completed", "v1-1", "any", "version: v1\n", "default", "Completed");
  EXPECT_EQ(run(Verb::resume), 2);
  EXPECT_THAT(err.str(), HasSubstr("no rollout is paused by spec.paused; all have ended: done (Completed)"));
  rollout("r", "Progressing", "v1-2");
  EXPECT_EQ(run(Verb::resume), 2);
  EXPECT_THAT(err.str(), HasSubstr("no rollout is paused by spec.paused; found r (Progressing). "));
  EXPECT_EQ(run(Verb::resume, "done"), 2);
  EXPECT_THAT(err.str(), HasSubstr("no rollout is paused by spec.paused; found done (Completed)"));
}

// --- without our CRDs

// Nothing has the switches there. The ConfigMap is not paused in the place of a policy: that would hold more than it.
TEST_F(OurClusterWithoutCrds, EveryVerbButDiffIsRefusedWithTheCommandThatInstallsThem) {
  const char* path = "/api/v1/namespaces/gpu-operator/configmaps/mps-config";
  const Json before = get(path);
  for (const char* name : {"", "policy/default", "r"}) {
    for (const Verb verb : {Verb::status, Verb::history, Verb::start, Verb::pause, Verb::resume, Verb::approve,
                            Verb::abort, Verb::undo}) {
      std::ostringstream out;
      std::ostringstream err;
      RolloutOptions options;
      options.verb = verb;
      options.name = name;
      EXPECT_EQ(sim.run(rollout_command(&client, &sim.clock, options, PlannerSettings(), "", &out, &err)), 2);
      EXPECT_THAT(err.str(), HasSubstr(": the SharingPolicy/SharingRollout CRDs are not installed in this cluster: "
                                       "install them with `kubectl apply --server-side -f crds/`; without them the "
                                       "annotation gpusharing.dev/paused=true of a device plugin's ConfigMap pauses "));
      EXPECT_EQ(out.str(), "");
    }
  }
  EXPECT_EQ(get(path), before);
}

// SharingPolicies are of the whole cluster: they are paused although the operator's record is not in that namespace.
TEST_F(RolloutCommand, APolicyIsPausedWithAWrongNamespaceOfTheOperator) {
  merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default/status",
        R"({"status":{"conditions":[{"type":"Progressing","status":"False","reason":"Settling","message":"m",
            "lastTransitionTime":"2026-01-01T00:00:00Z"}]}})");
  PlannerSettings settings;
  settings.operator_namespace = "elsewhere";
  options.verb = Verb::pause;
  EXPECT_EQ(sim.run(rollout_command(&client, &sim.clock, options, settings, "", &out, &err)), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("policy default: paused: no further node starts\n"));
  EXPECT_THAT(err.str(), HasSubstr("No operator was ever seen in namespace elsewhere"));
  EXPECT_THAT(err.str(), Not(HasSubstr("No operator is running")));
}

}  // namespace
}  // namespace gso::rollout_command_test
