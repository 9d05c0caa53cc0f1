// `rollout undo`: what goes back, what is written and what never is, and its exit status.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "controller/commands/rollout/rollout.h"
#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/record_store.h"
#include "reconcilers/fleet/pass.h"
#include "reconcilers/model/project.h"
#include "reconcilers/profile/profile.h"
#include "reconcilers/report/report.h"
#include "tests/controller/commands/rollout_commands.h"

namespace gso::rollout_undo_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using Verb = RolloutOptions::Verb;
using Json = nlohmann::json;

class InlineProfileUndo : public RolloutCommand {
 protected:
  // By policy p: a rollout of that name, in progress.
  void roll_out_inline_profile(const std::string& name = "r") {
    post("/apis/gpusharing.dev/v1alpha1/sharingpolicies",
         policy("p", R"({"profile":{"inline":{"strategy":"mps","replicas":4}}})"));
    InlineProfile profile;
    profile.strategy = "mps";
    profile.replicas = 4;
    rollout(name, "Progressing", "v1-2", inline_profile_key("p", profile), inline_profile_text(profile), "p");
  }
};

TEST_F(InlineProfileUndo, IsOneAnnotation) {
  roll_out_inline_profile();
  EXPECT_EQ(run(Verb::undo), 0) << err.str();
  const Json object = get("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r");
  EXPECT_EQ(object["metadata"]["annotations"]["gpusharing.dev/undo"], "true");
  EXPECT_FALSE(object["spec"].value("paused", false));
}

TEST_F(InlineProfileUndo, IsEndedByOneWriteOfAStart) {
  roll_out_inline_profile();
  ASSERT_EQ(run(Verb::undo), 0) << err.str();
  std::vector<std::string> writes;
  Json annotations;
  server.add_audit_listener([&](const sim::AuditEntry& entry) {
    writes.push_back(entry.verb + " " + entry.gvr.resource);
    annotations = (*entry.after)["metadata"]["annotations"];
  });
  ASSERT_EQ(run(Verb::start, "policy/p"), 0) << err.str();
  EXPECT_THAT(writes, testing::ElementsAre("patch sharingpolicies"));
  EXPECT_EQ(annotations["gpusharing.dev/retried-rollouts"],
            get("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r")["metadata"]["uid"]);
}

class Undo : public InlineProfileUndo {
 protected:
  Undo() {
    FleetRecord kept;
    kept.verified = {{"gpu-operator/mps-config/any", "v1-1"}};
    kept.texts = {{"v1-1", "version: v1 # good\n"}};
    record(print_head({kept}));
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

TEST_F(RolloutCommand, UndoRestoresWhatWasInUseAtTheInstallationThoughItWasNeverVerified) {
  FleetRecord kept;
  kept.note_shown("gpu-operator/mps-config/any", "v1-0", "version: v1 # before\n");
  record(print_head({kept}));
  rollout("r", "Progressing", "v1-2");
  EXPECT_EQ(run(Verb::undo), 0) << err.str();
  EXPECT_EQ(spec_of("r")["paused"], true);
  EXPECT_THAT(out.str(), HasSubstr("version: v1 # before\n"));
  EXPECT_THAT(out.str(), HasSubstr("(v1-0, in use at the installation, not verified)"));
  options.write_config_map = true;
  EXPECT_EQ(run(Verb::undo), 0) << err.str();
  EXPECT_EQ(get("/api/v1/namespaces/gpu-operator/configmaps/mps-config")["data"]["any"], "version: v1 # before\n");
  EXPECT_THAT(out.str(), Not(HasSubstr("skips the canary")));
}

TEST_F(Undo, WritesTheConfigMapOnlyWhenAskedTo) {
  options.write_config_map = true;
  EXPECT_EQ(run(Verb::undo), 0) << err.str();
  EXPECT_EQ(text(), "version: v1 # good\n");
  EXPECT_THAT(out.str(), HasSubstr("skips the canary"));
  EXPECT_FALSE(spec_of("r").value("paused", false));
}

// Between an edit and its SharingRollout nothing but the policy can be paused. The dry run says what the command does.
TEST_F(RolloutCommand, UndoInTheSettleWindowPausesThePolicyAsItsDryRunSays) {
  FleetRecord kept = edit_behind_pods_of({"gpu-1"});
  const std::string before = kept.texts.begin()->second;
  kept.verified["gpu-operator/mps-config/any"] = kept.texts.begin()->first;
  record(print_head({kept}));
  post("/apis/gpusharing.dev/v1alpha1/sharingpolicies", policy("research", R"({"priority":-10})"));
  const auto is_paused = [this](const char* name) {
    const Json spec = get(std::string("/apis/gpusharing.dev/v1alpha1/sharingpolicies/") + name)["spec"];
    return spec.value("rollout", Json::object()).value("paused", false);
  };
  options.dry_run = true;
  EXPECT_EQ(run(Verb::undo), 0) << err.str();
  EXPECT_THAT(out.str(),
              testing::EndsWith("next: gpu-sharing-operator rollout undo  # pauses policy default and prints "
                                "the text, for a ConfigMap from Git\n"));
  EXPECT_FALSE(is_paused("default"));
  options.dry_run = false;
  EXPECT_EQ(run(Verb::undo), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr(before));
  EXPECT_EQ(err.str(),
            "policy default: paused: no further node starts\n"
            "  to resume it, once the text is restored: gpu-sharing-operator rollout resume policy/default\n");
  EXPECT_TRUE(is_paused("default"));
  EXPECT_FALSE(is_paused("research"));
  options.dry_run = true;
  EXPECT_EQ(run(Verb::undo), 0) << err.str();
  EXPECT_THAT(out.str(), testing::EndsWith("rollout undo  # prints the text, for a ConfigMap from Git\n"))
      << "it is paused";
}

// The pause of a rollout does not hold the revision of the edit that replaces it.
TEST_F(RolloutCommand, UndoOfAnEditDuringARolloutPausesBoth) {
  FleetRecord kept = edit_behind_pods_of({"gpu-1"});
  kept.verified["gpu-operator/mps-config/any"] = kept.texts.begin()->first;
  record(print_head({kept}));
  rollout("r", "Progressing", "v1-2");
  EXPECT_EQ(run(Verb::undo), 0) << err.str();
  EXPECT_EQ(spec_of("r")["paused"], true);
  EXPECT_EQ(get("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default")["spec"]["rollout"]["paused"], true);
}

TEST_F(RolloutCommand, UndoThatMayNotPauseThePolicySaysThatNothingIsPaused) {
  FleetRecord kept = edit_behind_pods_of({"gpu-1"});
  kept.verified["gpu-operator/mps-config/any"] = kept.texts.begin()->first;
  record(print_head({kept}));
  sim::FaultRule rule;
  rule.fault = sim::Fault::forbidden;
  rule.resource = "sharingpolicies";
  rule.verb = "patch";
  transport.faults().add(rule);
  EXPECT_EQ(run(Verb::undo), 2);
  EXPECT_THAT(err.str(), testing::ContainsRegex("policy default is not paused(: nodes start at .*)?; to stop it: "
                                                "gpu-sharing-operator rollout pause policy/default\n"));
}

// The cluster's text shares by two; the one that was verified shares by four.
TEST_F(RolloutCommand, UndoShowsWithDryRunWhatRestartsAndTheChangeItselfAndWritesNothing) {
  const std::string four =
      "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 4}\n";
  const std::string verified = revision_of(parse_profile(four).profile);
  FleetRecord kept;
  kept.verified = {{"gpu-operator/mps-config/any", verified}};
  kept.texts = {{verified, four}};
  const std::string two = get("/api/v1/namespaces/gpu-operator/configmaps/mps-config")["data"]["any"];
  MachineRecord gpu_1;
  gpu_1.config_map = k8s::Interned("gpu-operator/mps-config");
  gpu_1.key = k8s::Interned("any");
  gpu_1.revision = k8s::Interned(revision_of(parse_profile(two).profile));
  const std::string uid = get("/api/v1/nodes/gpu-1")["metadata"]["uid"];
  kept.machines.set(machine_id(uid), gpu_1);
  record(print_head({kept}));
  rollout("r", "Progressing", "v1-2");
  const std::string config_map = "/api/v1/namespaces/gpu-operator/configmaps/mps-config";
  const Json before = get(config_map);
  options.dry_run = true;
  EXPECT_EQ(run(Verb::undo), 0) << err.str();
  EXPECT_THAT(out.str(),
              testing::StartsWith("Would restore " + verified + " (verified last) as key any of ConfigMap "));
  EXPECT_THAT(out.str(), testing::ContainsRegex("gpu-1 .*" + verified));
  EXPECT_THAT(out.str(), HasSubstr("mps-config/any: sharing.timeSlicing.resources[nvidia.com/gpu].replicas 2 -> 4; "
                                   "nvidia.com/gpu 4 -> 8 on one node\n"));
  EXPECT_THAT(out.str(), testing::EndsWith(
                             "next: gpu-sharing-operator rollout undo --write-configmap  # writes it into the "
                             "ConfigMap\nnext: gpu-sharing-operator rollout undo  # pauses the rollout and prints the "
                             "text, for a ConfigMap from Git\n"));
  EXPECT_EQ(get(config_map), before);
  EXPECT_FALSE(spec_of("r").value("paused", false));
  options.json = true;
  EXPECT_EQ(run(Verb::undo), 0) << err.str();
  const Json document = Json::parse(out.str());
  ASSERT_EQ(document["changes"].size(), 1U);
  const Json& change = document["changes"][0];
  ASSERT_EQ(change["fields"].size(), 1U);
  EXPECT_EQ(change["fields"][0]["before"], "2");
  EXPECT_EQ(change["fields"][0]["after"], "4");
  EXPECT_EQ(change["amounts"][0]["after"], 8);
}

// A restored text is another rollout than the one that is paused: its nodes start, and whoever restores it must know.
TEST_F(RolloutCommand, UndoSaysThatTheRestoredTextStartsNodesOrWhatStopsThem) {
  const std::string four =
      "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 4}\n";
  const std::string verified = revision_of(parse_profile(four).profile);
  FleetRecord kept = edit_behind_pods_of({"gpu-1"});
  kept.verified = {{"gpu-operator/mps-config/any", verified}};
  kept.texts[verified] = four;
  record(print_head({kept}));
  const std::string r = rollout_name({"default", "gpu-operator/mps-config", "any"}, target());
  rollout(r, "Progressing", target());
  EXPECT_EQ(run(Verb::undo), 0) << err.str();
  EXPECT_THAT(err.str(), HasSubstr("  once the text is restored, nodes change to it without a resume. To prevent that: "
                                   "gpu-sharing-operator rollout pause policy/default\n"));
  EXPECT_THAT(err.str(), Not(HasSubstr("rollout resume")));
  const std::string starts =
      "1 node of policy default then changes to it without a resume; the pause of " + r +
      " does not stop that. To prevent that: gpu-sharing-operator rollout pause policy/default\n";
  options.dry_run = true;
  EXPECT_EQ(run(Verb::undo), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("\n" + starts));
  merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default", R"({"spec":{"rollout":{"paused":true}}})");
  EXPECT_EQ(run(Verb::undo), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("\n1 node of policy default does not start (Paused): spec.rollout.paused of the "
                                   "policy is set. To start it: gpu-sharing-operator rollout resume policy/default\n"));
  merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default", R"({"spec":{"rollout":{"paused":false}}})");
  options.dry_run = false;
  options.write_config_map = true;
  EXPECT_EQ(run(Verb::undo), 0) << err.str();
  EXPECT_THAT(out.str(), testing::EndsWith("\n" + starts + "next: gpu-sharing-operator rollout status\n"));
}

// It can cost fewer restarts than the one that was verified last.
TEST_F(RolloutCommand, UndoNamesTheRevisionThatTheNodesRunThoughItWasNeverVerified) {
  const std::string running = "v1-00000000000000aa";
  FleetRecord kept = record_with_gpu_1(running);
  kept.verified = {{"gpu-operator/mps-config/any", "v1-1"}};
  kept.texts = {{"v1-1", "version: v1 # good\n"}};
  record(print_head({kept}));
  rollout("before", "Superseded", running, "any", "version: v1 # of the nodes\n");
  rollout("r", "Progressing", "v1-2");
  options.dry_run = true;
  EXPECT_EQ(run(Verb::undo), 0) << err.str();
  EXPECT_THAT(out.str(), testing::StartsWith("Would restore v1-1 (verified last)"));
  EXPECT_THAT(out.str(), HasSubstr("instead: gpu-sharing-operator rollout undo --to-revision " + running +
                                   "  # goes to " + running + " (1 node runs it)\n"));
  options.to_revision = running;
  EXPECT_EQ(run(Verb::undo), 0) << err.str();
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
  EXPECT_THAT(err.str(), HasSubstr("v1-9 is not in the history of gpu-operator/mps-config key any"));
  rollout("textless", "Completed", "v1-9", "any", "");
  EXPECT_EQ(run(Verb::undo, "r"), 2);
  EXPECT_THAT(err.str(), HasSubstr("the text of v1-9 is not recorded"));
  ProfileCache profiles;
  options.to_revision = profiles.compile(text())->revision;
  rollout("present", "Completed", options.to_revision);
  EXPECT_EQ(run(Verb::undo, "r"), 2);
  EXPECT_THAT(err.str(), HasSubstr("gpu-operator/mps-config key any already holds"));
}

TEST_F(Undo, NeverWritesTheTextOfOneKeyIntoAnother) {
  rollout("newest", "Progressing", "v1-7", "other", "version: v1 # of other\n");
  options.to_revision = "v1-7";
  options.write_config_map = true;
  const std::string before = text();
  EXPECT_EQ(run(Verb::undo, "r"), 2);
  EXPECT_THAT(err.str(), HasSubstr("v1-7 is not in the history of gpu-operator/mps-config key any, but in that of "
                                   "gpu-operator/mps-config key other"));
  EXPECT_EQ(text(), before);
  // Without a name, the revision says which key is meant.
  options.to_revision = "v1-1";
  EXPECT_EQ(run(Verb::undo), 0) << err.str();
  EXPECT_EQ(text(), "version: v1 # good\n");
}

// `audit` proposes it there.
TEST_F(Undo, OfAnAbortedRolloutGoesBackToTheLastVerifiedText) {
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r", R"({"spec":{"aborted":true}})");
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status", R"({"status":{"phase":"Failed"}})");
  EXPECT_EQ(run(Verb::undo, "r"), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("version: v1 # good\n"));
  options.dry_run = true;
  (void)run(Verb::undo, "r");
  EXPECT_THAT(out.str(), testing::StartsWith("Would restore v1-1 (verified last) as key any of ConfigMap "));
}

TEST_F(Undo, OfARevisionThatSeveralKeysHaveHadAsksForAName) {
  rollout("other", "Completed", "v1-1", "other");
  options.to_revision = "v1-1";
  EXPECT_EQ(run(Verb::undo), 2);
  EXPECT_THAT(err.str(), HasSubstr("key any (rollout r), gpu-operator/mps-config key other (rollout other). Name a "
                                   "rollout of one of them"));
}

TEST_F(Undo, OfATextThatStartedNoRolloutGoesBackToWhatTheNodesRun) {
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status", R"({"status":{"phase":"Superseded"}})");
  rollout("good", "Completed", "v1-1", "any", "version: v1 # good\n");
  rollout("newer", "Completed", "v1-5", "other");
  merge("/api/v1/namespaces/gpu-operator/configmaps/mps-config", R"({"data":{"any":"version: v1\nsharing: ["}})");
  EXPECT_EQ(run(Verb::undo), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("key any of ConfigMap gpu-operator/mps-config (v1-1, verified last)"));
  EXPECT_EQ(run(Verb::undo, "r"), 0) << "a superseded one names its key: " << err.str();
  EXPECT_THAT(out.str(), HasSubstr("(v1-1, verified last)"));
  EXPECT_FALSE(spec_of("r").value("paused", false));
}

// An undo that is complete is not undone by the next one: that would roll out once more what was given up.
TEST_F(Undo, RightAfterACompleteUndoThereIsNothingToUndo) {
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status", R"({"status":{"phase":"Superseded"}})");
  rollout("undone", "Superseded", "v1-1", "any", "version: v1 # good\n");
  const std::string present = ProfileCache().compile(text())->revision;
  rollout("present", "Completed", present);
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/present/status",
        R"({"status":{"startedAt":"2027-01-01T00:00:00Z"}})");
  EXPECT_EQ(run(Verb::undo), 0) << "an edit superseded it: " << err.str();
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/undone", R"({"spec":{"paused":true}})");
  EXPECT_EQ(run(Verb::undo), 2);
  EXPECT_THAT(err.str(), HasSubstr("nothing to undo: gpu-operator/mps-config key any holds " + present));
  EXPECT_THAT(err.str(), HasSubstr("To roll that out again: gpu-sharing-operator rollout undo --to-revision v1-1\n"));
}

TEST_F(Undo, NamesWhatElseTheKeyCanGoBackTo) {
  rollout("older", "Completed", "v1-0", "any", "version: v1 # older\n");
  EXPECT_EQ(run(Verb::undo), 0) << err.str();
  EXPECT_THAT(err.str(), HasSubstr("instead: gpu-sharing-operator rollout undo --to-revision v1-0  # goes to v1-0 "
                                   "(completed)\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("instead:"))) << "it is the text for a file";
}

TEST_F(Undo, OfADeletedConfigMapSaysThatItDoesNotExist) {
  (void)send(k8s::Method::del, "/api/v1/namespaces/gpu-operator/configmaps/mps-config", "", "");
  options.dry_run = true;
  EXPECT_EQ(run(Verb::undo), 2);
  EXPECT_THAT(err.str(), HasSubstr("ConfigMap gpu-operator/mps-config does not exist, and a device plugin mounts it"));
  EXPECT_THAT(err.str(), Not(HasSubstr("no device plugin mounts")));
}

TEST_F(Undo, OfAnInlineProfileToARevisionIsForItsPolicyToSay) {
  roll_out_inline_profile("own");
  options.to_revision = "v1-2";
  EXPECT_EQ(run(Verb::undo, "own"), 2);
  EXPECT_THAT(err.str(), HasSubstr("holds the inline profile of policy p"));
}

TEST_F(Undo, OfWhatTheNodesShouldRunNotOfTheNewestRecord) {
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status", R"({"status":{"phase":"Superseded"}})");
  ProfileCache profiles;
  rollout("present", "Completed", profiles.compile(text())->revision);
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
  EXPECT_THAT(out.str(), HasSubstr("set spec.profile.configMapKey to other"));
}

TEST_F(RolloutCommand, UndoWithoutAnythingVerifiedSaysSo) {
  rollout("r", "Progressing", "v1-2");
  EXPECT_EQ(run(Verb::undo), 2);
  EXPECT_THAT(err.str(), HasSubstr("no verified revision is recorded for gpu-operator/mps-config key any"));
}

TEST_F(Undo, WithoutTheRightToReadTheRecordSaysSoAndNotThatNothingWasVerified) {
  sim::FaultRule rule;
  rule.fault = sim::Fault::forbidden;
  rule.resource = "configmaps";
  transport.faults().add(rule);
  EXPECT_EQ(run(Verb::undo), 2);
  EXPECT_THAT(err.str(), HasSubstr("the operator's record cannot be read (see `incomplete`)"));
  EXPECT_FALSE(spec_of("r").value("paused", false));
}

struct OwnerCase {
  const char* name;
  const char* object;
  const char* owner;
};
class Owners : public testing::TestWithParam<OwnerCase> {};
TEST_P(Owners, AreNamed) {
  const GitOpsOwner owner = gitops_owner(project_configmap(GetParam().object).value_or(ConfigMap()));
  EXPECT_EQ(owner.tool.empty() ? "" : fmt::format("{} ({})", owner.tool, owner.mark), GetParam().owner);
}
INSTANTIATE_TEST_SUITE_P(
    GitOps, Owners,
    testing::Values(
        OwnerCase{
            "ArgoManager",
            R"({"metadata":{"name":"m","managedFields":[{"manager":"argocd-controller","fieldsV1":{"f:data":{}}}]}})",
            "Argo CD (field manager argocd-controller)"},
        OwnerCase{
            "FluxManager",
            R"({"metadata":{"name":"m","managedFields":[{"manager":"kustomize-controller","fieldsV1":{"f:data":{}}}]}})",
            "Flux (field manager kustomize-controller)"},
        OwnerCase{"FluxLabel", R"({"metadata":{"name":"m","labels":{"kustomize.toolkit.fluxcd.io/name":"gpu"}}})",
                  "Flux (labels kustomize.toolkit.fluxcd.io/name=gpu)"},
        OwnerCase{"ArgoLabel", R"({"metadata":{"name":"m","labels":{"argocd.argoproj.io/instance":"gpu"}}})",
                  "Argo CD (labels argocd.argoproj.io/instance=gpu)"},
        OwnerCase{"FluxOfAHelmRelease",
                  R"({"metadata":{"name":"m","labels":{"helm.toolkit.fluxcd.io/name":"gpu"},
                  "annotations":{"meta.helm.sh/release-name":"gpu"}}})",
                  "Flux (labels helm.toolkit.fluxcd.io/name=gpu)"},
        OwnerCase{"HelmAnnotation", R"({"metadata":{"name":"m","annotations":{"meta.helm.sh/release-name":"gpu"}}})",
                  "Helm (annotations meta.helm.sh/release-name=gpu)"},
        OwnerCase{
            "ManagerOfOtherFields",
            R"({"metadata":{"name":"m","managedFields":[{"manager":"argocd-controller","fieldsV1":{"f:metadata":{}}}]}})",
            ""},
        OwnerCase{"Kubectl",
                  R"({"metadata":{"name":"m","managedFields":[{"manager":"kubectl-edit","fieldsV1":{"f:data":{}}}]}})",
                  ""},
        OwnerCase{"NoObject", "[]", ""}, OwnerCase{"NoJson", "<html>", ""}),
    [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace gso::rollout_undo_test
