// `rollout …` on the simulated API server, with our CRDs: which switch each verb turns, what it says, and its exit
// status.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "controller/command_rollout.h"
#include "controller/quota_changes.h"
#include "controller/rollout_verbs.h"
#include "reconcilers/profile_book.h"
#include "tests/controller/our_cluster.h"

namespace gso {
namespace {

using testing::HasSubstr;
using testing::Not;
using Verb = RolloutOptions::Verb;
using Json = nlohmann::json;

class RolloutCommand : public OurCluster {
 protected:
  RolloutCommand() { post("/apis/gpusharing.dev/v1alpha1/sharingpolicies", policy("default", "{}")); }
  static std::string policy(const std::string& name, const std::string& spec) {
    return R"({"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingPolicy","metadata":{"name":")" + name +
           R"("},"spec":)" + spec + "}";
  }
  void rollout(const std::string& name, const std::string& phase, const std::string& revision,
               const std::string& key = "any", const std::string& text = "version: v1\n",
               const std::string& of = "default", const std::string& reason = "RollingOut") {
    const Json spec{{"policy", of},
                    {"configMap", "gpu-operator/mps-config"},
                    {"key", key},
                    {"toRevision", revision},
                    {"profile", text}};
    const Json object{{"apiVersion", "gpusharing.dev/v1alpha1"},
                      {"kind", "SharingRollout"},
                      {"metadata", {{"name", name}}},
                      {"spec", spec}};
    post("/apis/gpusharing.dev/v1alpha1/sharingrollouts", object.dump());
    sim.clock.run_for(std::chrono::seconds(1));
    if (phase.empty()) return;
    const Json condition{{"type", "Ready"},
                         {"status", "False"},
                         {"reason", reason},
                         {"message", "it is so"},
                         {"lastTransitionTime", "2026-01-01T00:00:00Z"}};
    const Json status{
        {"phase", phase},
        {"wave", 1},
        {"startedAt", "2026-01-01T00:00:00Z"},
        {"counts", {{"total", 4}, {"updated", 2}, {"inFlight", 1}, {"pending", 1}, {"blocked", 0}, {"failed", 0}}},
        {"conditions", Json::array({condition})}};
    merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/" + name + "/status", Json{{"status", status}}.dump());
  }
  int run(Verb verb, const std::string& name = "") {
    options.verb = verb;
    options.name = name;
    return run_with(options);
  }
  int run_with(RolloutOptions with, const std::string& input = "") {
    out.str("");
    err.str("");
    return sim.run(rollout_command(&client, &sim.clock, with, PlannerSettings(), input, &out, &err));
  }
  Json spec_of(const std::string& name) { return get("/apis/gpusharing.dev/v1alpha1/sharingrollouts/" + name)["spec"]; }

  RolloutOptions options;
  std::ostringstream out;
  std::ostringstream err;
};

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
  EXPECT_THAT(err.str(), HasSubstr("there is no rollout that could be paused"));
  rollout("done", "Completed", "v1-2");
  EXPECT_EQ(run(Verb::pause), 2);
  EXPECT_THAT(err.str(), HasSubstr("done (Completed)"));
  EXPECT_EQ(run(Verb::pause, "other"), 2);
  EXPECT_THAT(err.str(), HasSubstr("there is no SharingRollout other"));
}

TEST_F(RolloutCommand, ARevisionThatHasComeBackIsUnderWayAndTheSwitchesOfItsOldRecordAreNotTurned) {
  rollout("r", "Paused", "v1-2", "any", "version: v1\n", "default", "MaxFailures");
  EXPECT_EQ(run(Verb::abort), 0) << err.str();
  Json status = get("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r")["status"];
  status["conditions"].push_back({{"type", "Current"},
                                  {"status", "False"},
                                  {"reason", "NewAttempt"},
                                  {"message", "a new one takes its place"},
                                  {"lastTransitionTime", "2026-01-01T00:00:00Z"}});
  EXPECT_EQ(run(Verb::status), 0);
  EXPECT_THAT(out.str(), HasSubstr("No rollout is under way."));
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status", Json{{"status", status}}.dump());
  EXPECT_EQ(run(Verb::status), 1) << "what failed before holds it";
  EXPECT_THAT(out.str(), HasSubstr("MaxFailures: it is so"));
  EXPECT_EQ(run(Verb::resume), 2);
  EXPECT_THAT(err.str(), HasSubstr("r (Paused)"));
  EXPECT_EQ(run(Verb::abort), 2);
}

TEST_F(RolloutCommand, SeveralAreNotGuessedAmong) {
  rollout("a", "Progressing", "v1-2");
  rollout("b", "Progressing", "v1-3", "other");
  EXPECT_EQ(run(Verb::pause), 2);
  EXPECT_THAT(err.str(), HasSubstr("several rollouts are meant: "));
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
  EXPECT_THAT(out.str(), HasSubstr("policy default is paused too: rollout resume policy/default"));
}

TEST_F(RolloutCommand, StatusShowsWhatIsUnderWayAndEndsWithOneWhereItWentWrong) {
  EXPECT_EQ(run(Verb::status), 0);
  EXPECT_THAT(out.str(), HasSubstr("No rollout is under way."));
  rollout("r", "Progressing", "v1-2");
  EXPECT_EQ(run(Verb::status), 0);
  EXPECT_THAT(out.str(), HasSubstr("r: Progressing"));
  EXPECT_THAT(out.str(), HasSubstr("[############............] 2/4 up to date, 1 in flight, 1 pending"));
  rollout("s", "Paused", "v1-3", "other", "", "default", "MaxFailures");
  EXPECT_EQ(run(Verb::status), 1);
  EXPECT_THAT(out.str(), HasSubstr("MaxFailures: it is so"));
  options.json = true;
  EXPECT_EQ(run(Verb::status, "s"), 1);
  const Json document = Json::parse(out.str());
  ASSERT_EQ(document["rollouts"].size(), 1U);
  EXPECT_EQ(document["rollouts"][0]["counts"]["updated"], 2);
}

TEST_F(RolloutCommand, NoTimeIsGivenWhereWorkloadsDecide) {
  rollout("r", "Progressing", "v1-2");
  merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default/status",
        R"({"status":{"currentRollout":"r","estimatedCompletion":"2026-01-01T01:00:00Z"}})");
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_THAT(out.str(), testing::ContainsRegex("  for [0-9]+s, about [0-9]+m to go\n"));
  merge(
      "/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status",
      R"({"status":{"nodes":[{"name":"gpu-1","state":"Waiting","reason":"WaitingForWorkloads","message":"team/job"}]}})");
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_THAT(out.str(), testing::ContainsRegex("  for [0-9]+s, waiting for workloads on gpu-1\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("to go")));
  options.json = true;
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_EQ(Json::parse(out.str())["rollouts"][0]["estimatedCompletion"], "");
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
  const Json record{{"version", 1},
                    {"recordedAt", "2026-01-01T00:00:00Z"},
                    {"profiles", Json::object()},
                    {"preexistingDrift", Json::array()},
                    {"unproven", Json::array()},
                    {"verified", Json::object()}};
  const Json state{{"apiVersion", "v1"},
                   {"kind", "ConfigMap"},
                   {"metadata", {{"name", "gpu-sharing-operator-state"}}},
                   {"data", {{"baseline.json", record.dump()}}}};
  post("/api/v1/namespaces/" + PlannerSettings().operator_namespace + "/configmaps", state.dump());
  EXPECT_EQ(run(Verb::start), 0) << err.str();
  const Json annotations = get("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default")["metadata"]["annotations"];
  EXPECT_EQ(annotations["gpusharing.dev/adopt-drift"], "2026-01-01T00:00:00Z") << "of this baseline, and no later one";
  const std::string retry = annotations["gpusharing.dev/retry"];
  EXPECT_THAT(out.str(), HasSubstr("r: its record is removed, it was aborted"));
  EXPECT_EQ(get("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r")["kind"], "Status");
  sim.clock.run_for(std::chrono::seconds(1));
  EXPECT_EQ(run(Verb::start, "policy/default"), 0) << err.str();
  EXPECT_NE(
      get("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default")["metadata"]["annotations"]["gpusharing.dev/retry"],
      retry);
  EXPECT_EQ(run(Verb::start, "nobody"), 2);
}

// --- undo

TEST_F(RolloutCommand, UndoOfAnInlineProfileIsOneAnnotation) {
  post("/apis/gpusharing.dev/v1alpha1/sharingpolicies",
       policy("p", R"({"profile":{"inline":{"strategy":"mps","replicas":4}}})"));
  InlineProfile profile;
  profile.strategy = "mps";
  profile.replicas = 4;
  rollout("r", "Progressing", "v1-2", inline_profile_key("p", profile), inline_profile_text(profile), "p");
  EXPECT_EQ(run(Verb::undo), 0) << err.str();
  const Json object = get("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r");
  EXPECT_EQ(object["metadata"]["annotations"]["gpusharing.dev/undo"], "true");
  EXPECT_FALSE(object["spec"].value("paused", false));
}

class Undo : public RolloutCommand {
 protected:
  Undo() {
    const Json record{{"version", 1},
                      {"verified", {{"gpu-operator/mps-config/any", "v1-1"}}},
                      {"texts", {{"v1-1", "version: v1 # good\n"}}}};
    const Json state{{"apiVersion", "v1"},
                     {"kind", "ConfigMap"},
                     {"metadata", {{"name", "gpu-sharing-operator-state"}}},
                     {"data", {{"baseline.json", record.dump()}}}};
    post("/api/v1/namespaces/gpu-sharing-operator/configmaps", state.dump());
    rollout("r", "Progressing", "v1-2");
  }
  std::string text() { return get("/api/v1/namespaces/gpu-operator/configmaps/mps-config")["data"]["any"]; }
};

TEST_F(Undo, InPlacePausesAndPrintsTheLastVerifiedText) {
  const std::string before = text();
  EXPECT_EQ(run(Verb::undo), 0) << err.str();
  EXPECT_EQ(spec_of("r")["paused"], true);
  EXPECT_THAT(out.str(), HasSubstr("version: v1 # good\n"));
  EXPECT_THAT(out.str(), HasSubstr("verified last"));
  EXPECT_EQ(text(), before);
}

TEST_F(Undo, WritesTheConfigMapOnlyWhenAskedTo) {
  options.write_config_map = true;
  EXPECT_EQ(run(Verb::undo), 0) << err.str();
  EXPECT_EQ(text(), "version: v1 # good\n");
  EXPECT_FALSE(spec_of("r").value("paused", false));
}

TEST_F(Undo, NeverOverAGitOpsOwnerAndSaysWho) {
  merge("/api/v1/namespaces/gpu-operator/configmaps/mps-config",
        R"({"metadata":{"annotations":{"argocd.argoproj.io/tracking-id":"gpu:/ConfigMap:gpu-operator/mps-config"}}})");
  const std::string before = text();
  options.write_config_map = true;
  EXPECT_EQ(run(Verb::undo), 1);
  EXPECT_THAT(err.str(), HasSubstr("Argo CD"));
  EXPECT_THAT(out.str(), HasSubstr("version: v1 # good\n"));
  EXPECT_EQ(text(), before);
}

TEST_F(Undo, GoesToARevisionOfTheHistoryWhenAskedTo) {
  rollout("older", "Completed", "v1-0", "any", "version: v1 # older\n");
  options.to_revision = "v1-0";
  EXPECT_EQ(run(Verb::undo, "r"), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("version: v1 # older\n"));
  options.to_revision = "v1-9";
  EXPECT_EQ(run(Verb::undo, "r"), 2);
  EXPECT_THAT(err.str(), HasSubstr("the text of v1-9 is not on record"));
}

TEST_F(Undo, OfWhatTheNodesShouldRunNotOfTheNewestRecord) {
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status", R"({"status":{"phase":"Superseded"}})");
  ProfileBook book;
  rollout("present", "Completed", book.compile(text())->revision);
  rollout("newer", "Completed", "v1-5");
  options.json = true;
  EXPECT_EQ(run(Verb::undo), 0) << err.str();
  EXPECT_EQ(Json::parse(out.str())["rollout"], "present");
}

TEST_F(Undo, OfAKeyThatAPolicyChoseNamesTheKeyBefore) {
  post("/apis/gpusharing.dev/v1alpha1/sharingpolicies", policy("chooses", R"({"profile":{"configMapKey":"any"}})"));
  rollout("before", "Completed", "v1-7", "other", "version: v1\n", "chooses");
  rollout("moves", "Progressing", "v1-1", "any", "version: v1 # good\n", "chooses");
  EXPECT_EQ(run(Verb::undo, "moves"), 0) << err.str();
  EXPECT_EQ(spec_of("moves")["paused"], true);
  EXPECT_THAT(out.str(), HasSubstr("set its spec.profile.configMapKey back to other"));
}

TEST_F(RolloutCommand, UndoWithoutAnythingVerifiedSaysSo) {
  rollout("r", "Progressing", "v1-2");
  EXPECT_EQ(run(Verb::undo), 2);
  EXPECT_THAT(err.str(), HasSubstr("nothing is known to have been verified for gpu-operator/mps-config key any"));
}

struct OwnerCase {
  const char* name;
  const char* object;
  const char* owner;
};
class Owners : public testing::TestWithParam<OwnerCase> {};
TEST_P(Owners, AreNamed) {
  EXPECT_EQ(gitops_owner(GetParam().object), GetParam().owner);
}
INSTANTIATE_TEST_SUITE_P(
    GitOps, Owners,
    testing::Values(
        OwnerCase{"ArgoManager",
                  R"({"metadata":{"managedFields":[{"manager":"argocd-controller","fieldsV1":{"f:data":{}}}]}})",
                  "Argo CD (field manager argocd-controller)"},
        OwnerCase{"FluxManager",
                  R"({"metadata":{"managedFields":[{"manager":"kustomize-controller","fieldsV1":{"f:data":{}}}]}})",
                  "Flux (field manager kustomize-controller)"},
        OwnerCase{"FluxLabel", R"({"metadata":{"labels":{"kustomize.toolkit.fluxcd.io/name":"gpu"}}})",
                  "Flux (labels kustomize.toolkit.fluxcd.io/name=gpu)"},
        OwnerCase{"HelmAnnotation", R"({"metadata":{"annotations":{"meta.helm.sh/release-name":"gpu"}}})",
                  "Helm (annotations meta.helm.sh/release-name=gpu)"},
        OwnerCase{"ManagerOfOtherFields",
                  R"({"metadata":{"managedFields":[{"manager":"argocd-controller","fieldsV1":{"f:metadata":{}}}]}})",
                  ""},
        OwnerCase{"Kubectl", R"({"metadata":{"managedFields":[{"manager":"kubectl-edit","fieldsV1":{"f:data":{}}}]}})",
                  ""},
        OwnerCase{"NoObject", "[]", ""}, OwnerCase{"NoJson", "<html>", ""}),
    [](const auto& param) { return param.param.name; });

// --- diff

TEST_F(RolloutCommand, DiffNamesNodesRestartsAndWhoIsInTheWay) {
  const std::string file = "version: v1\n";  // Two GPUs, where four replicas are now.
  post("/api/v1/namespaces/gpu-operator/pods",
       R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"job"},"spec":{"nodeName":"gpu-1",
    "containers":[{"name":"c","image":"i","resources":{"limits":{"nvidia.com/gpu":"3"},"requests":{"nvidia.com/gpu":"3"}}}]}})");
  options.verb = Verb::diff;
  options.file = "-";
  EXPECT_EQ(run_with(options, file), 0) << err.str();
  EXPECT_THAT(out.str(), testing::ContainsRegex("gpu-1 .*gpu-operator/job"));
  EXPECT_THAT(out.str(), HasSubstr("1 node would change"));
  options.json = true;
  EXPECT_EQ(run_with(options, file), 0) << err.str();
  EXPECT_EQ(Json::parse(out.str())["nodes"][0]["inTheWay"][0], "gpu-operator/job");
}

TEST_F(RolloutCommand, DiffNamesQueuesThatMeanSomethingElseAfterwards) {
  post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", R"({"apiVersion":"apiextensions.k8s.io/v1",
    "kind":"CustomResourceDefinition","metadata":{"name":"queues.scheduling.run.ai"},"spec":{"group":"scheduling.run.ai",
    "scope":"Cluster","names":{"plural":"queues","singular":"queue","kind":"Queue","listKind":"QueueList"},
    "versions":[{"name":"v2","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",
      "x-kubernetes-preserve-unknown-fields":true}}}]}})");
  sim.clock.run_for(std::chrono::seconds(1));
  post("/apis/scheduling.run.ai/v2/queues", R"({"apiVersion":"scheduling.run.ai/v2","kind":"Queue",
    "metadata":{"name":"research"},"spec":{"resources":{"gpu":{"quota":8,"limit":-1}}}})");
  options.verb = Verb::diff;
  options.file = "-";
  EXPECT_EQ(run_with(options, "version: v1\n"), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("KAI queue research: resources.gpu.quota=8 means something else: the nodes that "
                                   "change offer 4 of nvidia.com/gpu now, and 2 afterwards\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("limit=")));
  options.json = true;
  EXPECT_EQ(run_with(options, "version: v1\n"), 0) << err.str();
  EXPECT_EQ(Json::parse(out.str())["quotas"][0]["offeredAfter"], 2);
}

TEST(Quotas, ThoseThatCountAChangedResourceAreFound) {
  const std::map<std::string, OfferChange> offers{{"nvidia.com/gpu", {4, 0}}, {"nvidia.com/gpu.shared", {0, 8}}};
  const auto fields = [&](const char* resource, const char* json) {
    std::string out;
    for (const QuotaChange& quota : quotas_in(resource, json, offers)) out += quota.object + ": " + quota.field + "\n";
    return out;
  };
  EXPECT_EQ(fields("resourcequotas", R"({"metadata":{"name":"q","namespace":"team"},"spec":{"hard":{
      "pods":"9","requests.nvidia.com/gpu":"8","limits.nvidia.com/gpu.shared":2,"requests.nvidia.com/mig-1g.5gb":"1"}}})"),
            "ResourceQuota team/q: limits.nvidia.com/gpu.shared=2\nResourceQuota team/q: requests.nvidia.com/gpu=8\n");
  EXPECT_EQ(fields("clusterqueues", R"({"metadata":{"name":"c"},"spec":{"resourceGroups":[{"flavors":[{"name":"a100",
      "resources":[{"name":"cpu","nominalQuota":9},{"name":"nvidia.com/gpu","nominalQuota":"4"}]}]}]}})"),
            "Kueue ClusterQueue c: a100 nvidia.com/gpu=4\n");
  for (const char* odd :
       {"", "[]", "{}", R"({"spec":[]})", R"({"spec":{"hard":3,"resourceGroups":{},"resources":{"gpu":"x"}}})"}) {
    for (const char* resource : {"resourcequotas", "queues", "clusterqueues", "others"})
      EXPECT_EQ(fields(resource, odd), "");
  }
}

TEST_F(RolloutCommand, DiffOfATextThatNoPluginTakesEndsWithOne) {
  options.verb = Verb::diff;
  options.file = "-";
  EXPECT_EQ(
      run_with(options, "version: v1\nsharing:\n  mps:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 0}\n"),
      1);
  EXPECT_THAT(out.str(), HasSubstr("invalid: key any: "));
  EXPECT_EQ(run_with(options, "kind: Secret\nmetadata: {name: x}\n"), 2);
  EXPECT_THAT(err.str(), HasSubstr("kind Secret is neither a ConfigMap nor a profile"));
}

TEST_F(RolloutCommand, DiffOfAnUnknownKeyIsUsageAndNamesTheKeysThereAre) {
  options.verb = Verb::diff;
  options.file = "-";
  options.key = "typo";
  EXPECT_EQ(run_with(options, "version: v1\n"), 2) << out.str();
  EXPECT_EQ(
      err.str(),
      "gpu-sharing-operator diff: ConfigMap gpu-operator/mps-config has no key typo, and no node asks for it; there "
      "is any\n");
  merge("/api/v1/nodes/gpu-1", R"({"metadata":{"labels":{"nvidia.com/device-plugin.config":"typo"}}})");
  EXPECT_EQ(run_with(options, "version: v1\n"), 0) << err.str();
}

TEST_F(RolloutCommand, DiffTellsAnInvalidTextOnceHoweverManyNodesItConcerns) {
  post("/api/v1/nodes", R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"gpu-2",
      "labels":{"nvidia.com/gpu.present":"true","nvidia.com/gpu.count":"2"}}})");
  options.verb = Verb::diff;
  options.file = "-";
  const std::string bad = "version: v1\nsharing:\n  mps:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 0}\n";
  EXPECT_EQ(run_with(options, bad), 1);
  const std::string text = out.str();
  const std::size_t first = text.find("invalid: key any: ");
  ASSERT_NE(first, std::string::npos) << text;
  const std::string reason = text.substr(first + 18, 20);
  EXPECT_EQ(text.find(reason), first + 18) << text;
  EXPECT_EQ(text.find(reason, first + 19), std::string::npos) << text;
}

TEST_F(RolloutCommand, DiffOfAConfigMapWithoutAKeyThatNodesUseIsAnError) {
  options.verb = Verb::diff;
  options.file = "-";
  const std::string without =
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mps-config, namespace: gpu-operator}\n"
      "data: {other: \"version: v1\\n\"}\n";
  EXPECT_EQ(run_with(options, without), 1) << err.str();
  EXPECT_THAT(out.str(),
              HasSubstr("error KeyInUse: key any of ConfigMap gpu-operator/mps-config goes, and one node uses "
                        "it: gpu-1\n"));
  options.json = true;
  EXPECT_EQ(run_with(options, without), 1) << err.str();
  EXPECT_EQ(Json::parse(out.str())["findings"][0]["nodes"], Json::array({"gpu-1"}));
}

TEST_F(RolloutCommand, DiffWithoutAFileShowsWhatIsPending) {
  options.verb = Verb::diff;
  EXPECT_EQ(run_with(options), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("No node would change."));
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
  EXPECT_THAT(err.str(), HasSubstr("our CRDs are not served here"));
}

}  // namespace
}  // namespace gso
