// `rollout start`: what it retries, what keeps that from starting, and which records it deletes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/record_store.h"
#include "reconcilers/fleet/pass.h"
#include "tests/controller/commands/rollout_commands.h"

namespace gso::rollout_start_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using Verb = RolloutOptions::Verb;
using Json = nlohmann::json;

TEST_F(RolloutCommand, StartShowsWithDryRunWhatItRetriesAndWritesNothing) {
  rollout("r", "Failed", "v1-2", "any", "version: v1\n", "default", "Aborted");
  merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default", R"({"spec":{"rollout":{"paused":true}}})");
  const Json before = get("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default");
  options.dry_run = true;
  EXPECT_EQ(run(Verb::start), 0) << err.str();
  EXPECT_EQ(get("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default"), before);
  EXPECT_EQ(get("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r")["metadata"]["name"], "r");
  EXPECT_THAT(out.str(), Not(HasSubstr("Retrying")));
  EXPECT_THAT(out.str(), HasSubstr("  key any waits (Paused): spec.rollout.paused of the policy is set\n"
                                   "  next: gpu-sharing-operator rollout resume policy/default\n"));
}

// A healthy fleet whose rollouts are complete.
TEST_F(RolloutCommand, AStartWithNothingToRetryWritesNothingAndSaysSo) {
  record_gpu_1(target());
  rollout("r", "Completed", target());
  int writes = 0;
  server.add_audit_listener([&](const sim::AuditEntry& entry) { writes += entry.verb == "patch" ? 1 : 0; });
  for (const bool dry_run : {false, true}) {
    options.dry_run = dry_run;
    EXPECT_EQ(run(Verb::start), 0) << err.str();
    EXPECT_EQ(out.str(),
              "Nothing to start: no node of policy default failed or was deferred, and no rollout of it was aborted or "
              "undone\n");
  }
  options.json = true;
  EXPECT_EQ(run(Verb::start), 0) << err.str();
  EXPECT_TRUE(Json::parse(out.str())["nodes"].empty()) << "a preview in JSON stays JSON";
  options.json = false;
  options.dry_run = false;
  options.adopt = true;
  EXPECT_EQ(run(Verb::start), 0) << err.str();
  EXPECT_THAT(out.str(), testing::EndsWith(", and none was unproven or had drifted when the operator was installed\n"));
  EXPECT_EQ(writes, 0);
  options.adopt = false;
  fail("gpu-1");
  sim.clock.run_for(std::chrono::seconds(1));
  EXPECT_EQ(run(Verb::start), 0) << err.str();
  EXPECT_THAT(out.str(), testing::StartsWith("Retrying failed and deferred nodes of policy default\n"));
  EXPECT_EQ(writes, 2) << "the node, and its policy";
}

// Regression: it said that nodes are retried, while the pause keeps each of them.
TEST_F(RolloutCommand, AStartOfWhatIsPausedSaysThatNoNodeStartsAndHowToResumeIt) {
  record_gpu_1("v1-0");
  fail("gpu-1");
  merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default", R"({"spec":{"rollout":{"paused":true}}})");
  sim.clock.run_for(std::chrono::seconds(1));
  EXPECT_EQ(run(Verb::start), 0) << err.str();
  EXPECT_EQ(out.str(),
            "Recorded a retry of failed and deferred nodes of policy default\n"
            "No node starts before this ends:\n"
            "  key any waits (Paused): spec.rollout.paused of the policy is set\n"
            "  next: gpu-sharing-operator rollout resume policy/default\n");
}

TEST_F(RolloutCommand, AStartOfARolloutThatIsPausedItselfNamesIt) {
  record_gpu_1("v1-0");
  fail("gpu-1");
  const std::string r = rollout_name({"default", "gpu-operator/mps-config", "any"}, target());
  rollout(r, "Paused", target(), "any", "version: v1\n", "default", "Paused");
  EXPECT_EQ(run(Verb::pause), 0) << err.str();
  EXPECT_EQ(run(Verb::start), 0) << err.str();
  EXPECT_EQ(out.str(),
            "Recorded a retry of failed and deferred nodes of policy default\n"
            "No node starts before this ends:\n"
            "  key any waits (Paused): spec.paused of the rollout is set\n"
            "  next: gpu-sharing-operator rollout resume " +
                r + "\n");
}

// Nodes that wait for their turn are no failure: a start moves none of them.
TEST_F(RolloutCommand, AStartNamesTheStatusOfNodesThatWaitAlready) {
  record(print_head({edit_behind_pods_of({"gpu-1"})}));
  EXPECT_EQ(run(Verb::start), 0) << err.str();
  EXPECT_THAT(out.str(), testing::StartsWith("Nothing to start: "));
  EXPECT_THAT(out.str(), HasSubstr("  1 node waits for a change already: gpu-sharing-operator rollout status "
                                   "policy/default\n"));
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
  (void)send(k8s::Method::del, "/apis/gpusharing.dev/v1alpha1/sharingrollouts/r", "", "");
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

// Another revision has ended that abort: its record is history, and there is nothing to retry.
TEST_F(RolloutCommand, AStartLeavesTheRecordOfAnAbortOfAnotherRevision) {
  record_gpu_1(target());
  rollout("old", "Failed", "v1-2", "any", "version: v1\n", "default", "Aborted");
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/old", R"({"spec":{"aborted":true}})");
  EXPECT_EQ(run(Verb::start), 0) << err.str();
  EXPECT_THAT(out.str(), testing::StartsWith("Nothing to start: "));
  EXPECT_EQ(get("/apis/gpusharing.dev/v1alpha1/sharingrollouts/old")["kind"], "SharingRollout");
}

TEST_F(RolloutCommand, AStartSaysThatAPauseBeforeTheAbortStays) {
  rollout("r", "Progressing", "v1-2");
  EXPECT_EQ(run(Verb::pause), 0) << err.str();
  EXPECT_EQ(run(Verb::abort), 0) << err.str();
  EXPECT_EQ(run(Verb::start), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("  rollout r, which was aborted\n"
                                   "  r is still paused: once an operator has created it again, gpu-sharing-operator "
                                   "rollout resume r\n"));
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

// A text that no plugin takes starts nothing, and says so.
TEST_F(RolloutCommand, AStartOfAnInvalidProfileNamesTheKey) {
  record_gpu_1(target());
  merge("/api/v1/namespaces/gpu-operator/configmaps/mps-config", R"({"data":{"any":"version: v1\nsharing: ["}})");
  EXPECT_EQ(run(Verb::start), 1) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("Nothing to start: "));
  EXPECT_THAT(out.str(),
              HasSubstr("  ConfigInvalid: key any of ConfigMap gpu-operator/mps-config is invalid, and no node "
                        "starts with it: gpu-sharing-operator audit\n"));
}

}  // namespace
}  // namespace gso::rollout_start_test
