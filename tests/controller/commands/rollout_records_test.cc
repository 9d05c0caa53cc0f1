// `rollout undo` and `rollout start` over records that no plan leaves at once; tests/transcripts has the others.
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

namespace gso::rollout_records_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using Verb = RolloutOptions::Verb;
using Json = nlohmann::json;

class InlineProfileUndo : public RolloutCommand {
 protected:
  // By policy p: rollout r, in progress.
  void roll_out_inline_profile() {
    post("/apis/gpusharing.dev/v1alpha1/sharingpolicies",
         policy("p", R"({"profile":{"inline":{"strategy":"mps","replicas":4}}})"));
    InlineProfile profile;
    profile.strategy = "mps";
    profile.replicas = 4;
    rollout("r", "Progressing", "v1-2", inline_profile_key("p", profile), inline_profile_text(profile), "p");
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

TEST_F(InlineProfileUndo, ToARevisionIsForItsPolicyToSay) {
  roll_out_inline_profile();
  options.to_revision = "v1-2";
  EXPECT_EQ(run(Verb::undo, "r"), 2);
  EXPECT_THAT(err.str(), HasSubstr("holds the inline profile of policy p"));
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

TEST_F(RolloutCommand, StartSetsAnotherRetryAndForgetsWhatWasAborted) {
  rollout("r", "Progressing", target());
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
  EXPECT_THAT(out.str(), HasSubstr("  rollout r, which was aborted\n"));
  const Json aborted = get("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r");
  const std::string first = aborted["metadata"]["uid"];
  EXPECT_EQ(annotations["gpusharing.dev/retried-rollouts"], first);
  EXPECT_EQ(run(Verb::abort, "r"), 2) << "an operator has yet to begin it again";
  (void)send(k8s::Method::del, "/apis/gpusharing.dev/v1alpha1/sharingrollouts/r");
  sim.clock.run_for(std::chrono::seconds(1));
  rollout("r", "Failed", target(), "any", "version: v1\n", "default", "Aborted");
  EXPECT_EQ(run(Verb::abort, "r"), 2) << "it has ended";
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r", R"({"spec":{"aborted":true}})");
  EXPECT_EQ(run(Verb::start, "policy/default"), 0) << err.str();
  const Json later = get("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default")["metadata"]["annotations"];
  EXPECT_NE(later["gpusharing.dev/retry"], retry);
  const std::string second = get("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r")["metadata"]["uid"];
  EXPECT_EQ(later["gpusharing.dev/retried-rollouts"], second + "," + first)
      << "no operator might have seen the first start";
  EXPECT_EQ(run(Verb::start, "nobody"), 2);
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
  EXPECT_THAT(out.str(), Not(HasSubstr("v1-6"))) << "the key has another text now";
  EXPECT_THAT(out.str(), HasSubstr(present + " of gpu-operator/mps-config key any, which failed on gpu-1"));
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
}  // namespace gso::rollout_records_test
