// `rollout status`: what to type next about a rollout, a waiting policy or a node in trouble.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reconcilers/model/labels.h"
#include "reconcilers/node/node_change.h"
#include "tests/change_words/change_words.h"
#include "tests/controller/commands/rollout_commands.h"

namespace gso::rollout_next_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using Verb = RolloutOptions::Verb;
using Json = nlohmann::json;

// A wait that a person can end says how; one that only a retry or another profile ends is exit status 1.
TEST_F(RolloutCommand, AWaitOfAPolicyNamesTheCommandThatEndsIt) {
  const struct {
    const char* holds;
    const char* reason;
    int exit_status;
    const char* message;
    std::string next;
  } rows[] = {
      {"False", "Paused", 0, "spec.rollout.paused of the policy is set",
       "  next: gpu-sharing-operator rollout resume policy/default\n"},
      {"False", "ConfigInvalid", 1, "key any: line 6: put a space after the colon",
       "  next: gpu-sharing-operator audit\n"},
      {"True", "RollingOut", 0, "the operator starts the first of a01, a02 next",
       "  to stop it: gpu-sharing-operator rollout pause policy/default\n"},
      {"False", "OutsideWindow", 0, "the next maintenance window opens at 22:00",
       "  next: kubectl edit sharingpolicies.gpusharing.dev default  # spec.rollout.maintenanceWindows, to start nodes "
       "sooner; "
       "otherwise "
       "wait\n"},
      {"False", "Observe", 0, "the policy's mode is Observe: nothing is changed",
       "  next: kubectl patch sharingpolicies default --type merge --patch '{\"spec\":{\"mode\":\"Approve\"}}'  # "
       "after a look at `gpu-sharing-operator diff`; each change then waits for `gpu-sharing-operator rollout approve "
       "policy/default`; mode Enforce instead starts this change and every later edit without asking\n"},
      {"False", "AwaitingApproval", 0, "waits for spec.approved of its SharingRollout",
       "  next: gpu-sharing-operator diff\n  next: gpu-sharing-operator rollout approve policy/default\n"},
      {"False", "Aborted", 1, "the rollout was aborted", "  next: gpu-sharing-operator rollout start default\n"},
      {"False", "Undone", 1, "rolled back by a person", "  next: gpu-sharing-operator rollout start default\n"},
      {"False", "MaxFailures", 1, "v1-2 failed before",
       "  next: gpu-sharing-operator rollout start default  # retries all failed nodes, once the cause is fixed\n"},
      {"False", "BudgetExhausted", 0,
       "no slot is free: a01 holds 1 of 1 slot of policy default (maxUnavailable); also full: the cluster "
       "(--cluster-max-unavailable): a01 holds 1 of 1 slot",
       "  next: kubectl edit sharingpolicies.gpusharing.dev default  # to raise spec.rollout.maxUnavailable; the chart "
       "value config.max-unavailable is for a new cluster only; raise the chart value config.cluster-max-unavailable "
       "with helm upgrade as well: all of these budgets are full, and one alone frees no slot\n"},
  };
  for (const auto& row : rows) {
    const Json condition{{"type", "Progressing"},
                         {"status", row.holds},
                         {"reason", row.reason},
                         {"message", row.message},
                         {"lastTransitionTime", "2026-01-01T00:00:00Z"}};
    const Json budgets = {"maxUnavailable", "cluster-max-unavailable"};
    const Json status{{"conditions", Json::array({condition})},
                      {"reason", {{"code", row.reason}, {"budgets", budgets}}},
                      {"nodes", {{"pending", 2}}}};
    merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default/status", Json{{"status", status}}.dump());
    const bool paused = std::string(row.reason) == "Paused";
    const char* mode = std::string(row.reason) == "Observe" ? "Observe" : "Enforce";
    merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default",
          Json{{"spec", {{"mode", mode}, {"rollout", {{"paused", paused}}}}}}.dump());
    EXPECT_EQ(run(Verb::status), row.exit_status) << row.reason << err.str();
    EXPECT_THAT(out.str(), testing::EndsWith(std::string(row.message) + "\n" + row.next));
  }
  EXPECT_EQ(run(Verb::pause, "policy/default"), 0) << err.str();
  EXPECT_EQ(run(Verb::status), 0) << err.str();
  EXPECT_THAT(out.str(),
              HasSubstr("policy default waits: Paused: spec.rollout.paused of the policy is set (recorded; an "
                        "operator applies it)\n  next: gpu-sharing-operator rollout resume policy/default\n"));
}

// A policy that says Enforce needs no patch: the operator's own mode is what holds it, and its record does not say so.
TEST_F(RolloutCommand, UnderMaxModeObserveTheOperatorsModeIsWhatIsChanged) {
  const Json condition{{"type", "Progressing"},
                       {"status", "False"},
                       {"reason", "Observe"},
                       {"message", "1 of 1 nodes would change"},
                       {"lastTransitionTime", "2026-01-01T00:00:00Z"}};
  const Json status{{"conditions", Json::array({condition})}, {"nodes", {{"pending", 1}}}};
  merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default/status", Json{{"status", status}}.dump());
  for (const char* mode : {"Enforce", "Approve"}) {
    merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default", Json{{"spec", {{"mode", mode}}}}.dump());
    EXPECT_EQ(run(Verb::status), 0) << err.str();
    EXPECT_THAT(out.str(), HasSubstr("  next: " + upgrade_chart("--set modes.rollouts=Approve (without the chart: ")));
    EXPECT_THAT(out.str(),
                HasSubstr("each change then waits for `gpu-sharing-operator rollout approve policy/default`"));
    EXPECT_THAT(out.str(), Not(HasSubstr("kubectl patch sharingpolicies"))) << mode;
  }
}

// The command that shows a stop also says what ends it.
TEST_F(RolloutCommand, StatusPrintsTheWayOutOfEachStop) {
  const struct {
    const char* phase;
    const char* reason;
    const char* next;
  } rows[] = {
      {"Paused", "Paused", ""},  // Resumed, and no operator has looked since; that of a paused one is below.
      {"AwaitingApproval", "AwaitingApproval",
       "  next: gpu-sharing-operator diff\n  next: gpu-sharing-operator rollout approve r\n"},
      {"Failed", "Aborted", "  next: gpu-sharing-operator rollout start default\n"},
      {"Paused", "ConfigInvalid", "  next: gpu-sharing-operator audit\n"},
      {"Progressing", "OutsideWindow",
       "  next: kubectl edit sharingpolicies.gpusharing.dev default  # spec.rollout.maintenanceWindows, to start nodes "
       "sooner; "
       "otherwise "
       "wait\n"},
      {"Paused", "Observe",
       "  next: kubectl patch sharingpolicies default --type merge --patch '{\"spec\":{\"mode\":\"Approve\"}}'  # "
       "after a look at `gpu-sharing-operator diff`; each change then waits for `gpu-sharing-operator rollout approve "
       "policy/default`; mode Enforce instead starts this change and every later edit without asking\n"},
      {"Progressing", "RollingOut", ""},
  };
  for (const auto& row : rows) {
    const char* mode = std::string(row.reason) == "Observe" ? "Observe" : "Enforce";
    merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default", Json{{"spec", {{"mode", mode}}}}.dump());
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
  EXPECT_THAT(out.str(), testing::ContainsRegex("\n  Started [0-9ms]+ ago\n")) << "nothing runs";
  EXPECT_THAT(out.str(), Not(HasSubstr("Running ")));
  EXPECT_THAT(out.str(),
              HasSubstr("  next: gpu-sharing-operator rollout resume r  # continues to v1-2; the pause does not "
                        "stop a rollout that an edit or an undo starts\n"));
  merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default", R"({"spec":{"rollout":{"paused":true}}})");
  (void)run(Verb::status, "r");
  EXPECT_THAT(out.str(), HasSubstr("  next: gpu-sharing-operator rollout resume policy/default\n"));
  options.json = true;
  (void)run(Verb::status, "r");
  EXPECT_EQ(Json::parse(out.str())["rollouts"][0]["next"][0], "gpu-sharing-operator rollout resume policy/default");
}

TEST_F(RolloutCommand, StatusPrintsWhatToTypeAboutANodeInTrouble) {
  const auto next_for = [&](const std::string& reason, const std::string& message = "as reported",
                            const Json& facts = Json::object()) {
    (void)send(k8s::Method::del, "/apis/gpusharing.dev/v1alpha1/sharingrollouts/r", "", "");
    rollout("r", "Progressing", "v1-2");
    Json node{{"name", "gpu-1"}, {"state", "Waiting"}, {"reason", reason}, {"message", message}};
    node.update(facts);
    merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status",
          Json{{"status", {{"nodes", Json::array({node})}}}}.dump());
    (void)run(Verb::status, "r");
    const std::size_t at = out.str().find("  next: ");
    return at == std::string::npos ? std::string() : out.str().substr(at);
  };
  const std::string pods = "  next: kubectl get pods --all-namespaces --field-selector spec.nodeName=gpu-1  # ";
  const std::string idle = pods + "the owners of the pods end them, or delete them\n";
  const std::string edit =
      "  next: kubectl edit sharingpolicies.gpusharing.dev default  # the administrator of policy default sets "
      "spec.rollout.";
  const std::string interrupt =
      edit + "workloads: Interrupt: the operator does not wait, and the GPU work of the pods fails\n";
  EXPECT_EQ(next_for("WaitingForWorkloads"),
            idle + edit +
                "workloads: Evict: the operator evicts the pods, with their grace period and within "
                "PodDisruptionBudgets (it needs the chart value eviction.enabled=true, which whoever installs the "
                "operator sets); for pods without a controller set evictBarePods: true as well\n" +
                interrupt);
  merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default", R"({"spec":{"rollout":{"workloads":"Evict"}}})");
  EXPECT_EQ(next_for("WaitingForWorkloads"), idle) << "they are being evicted";
  const std::string budgets = "  next: kubectl get poddisruptionbudgets --all-namespaces";
  const std::string scale = "  # the owners of the pods scale the workload up, or whoever owns ";
  EXPECT_EQ(next_for("PDBRefuses"),
            budgets + scale + "its PodDisruptionBudget changes it, so that a pod can be evicted (gpu-1)\n" + interrupt);
  EXPECT_EQ(next_for("PDBRefuses",
                     "a PodDisruptionBudget prevents the eviction of team/web-1: Cannot evict pod as it would violate "
                     "the pod's disruption budget. The disruption budget web needs 2 healthy pods and has 2 currently"),
            budgets + " --field-selector metadata.name=web" + scale +
                "PodDisruptionBudget web changes it, so that a pod can be evicted (gpu-1)\n" + interrupt);
  const std::string allow = "  next: " + upgrade_chart("--set eviction.enabled=true (gpu-1)\n");
  EXPECT_EQ(
      next_for("Forbidden", "the operator is not allowed to evict team/job: forbidden", {{"evictionRefused", true}}),
      allow + interrupt);
  EXPECT_EQ(next_for("Forbidden"), allow) << "of a write that concerns no pod";
  EXPECT_EQ(next_for("WaitingForWorkloads", "waits for team/nb", {{"podsWithoutController", true}}),
            idle + edit +
                "evictBarePods: true: the operator evicts pods without a controller as well, and nothing creates "
                "those again\n" +
                interrupt);
  Json refuses{{"evictionForbiddenBy", "gpusharing.dev/do-not-disrupt=true"}};
  const std::string annotated = pods +
                                "the owners of the pods end them, delete them, or remove the annotation "
                                "gpusharing.dev/do-not-disrupt=true, which forbids their eviction\n" +
                                interrupt;
  EXPECT_EQ(next_for("WaitingForWorkloads", "waits for team/train", refuses), annotated);
  refuses["podsWithoutController"] = true;
  EXPECT_EQ(next_for("WaitingForWorkloads", "waits for both", refuses), annotated)
      << "the bare pod alone frees nothing";
  (void)plugin_pod();
  merge(
      "/api/v1/namespaces/gpu-operator/pods/plugin-1/status",
      R"({"status":{"phase":"Running","containerStatuses":[{"name":"nvidia-device-plugin","ready":false,"restartCount":3,
            "image":"i","imageID":"i","state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}})");
  EXPECT_EQ(
      next_for("VerificationFailed"),
      "  next: kubectl logs plugin-1 --namespace gpu-operator --container nvidia-device-plugin --previous  # gpu-1\n");
  merge("/api/v1/nodes/gpu-1/status", R"({"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}})");
  EXPECT_EQ(next_for("NodesNotReady"), "  next: kubectl describe node gpu-1\n");
}

// A retry would only wait for the same pods again: they come first, and whoever uncordoned the node can keep it.
TEST_F(RolloutCommand, StatusOfADeferredNodeShowsItsPodsBeforeTheRetry) {
  const auto next = [&] {
    (void)send(k8s::Method::del, "/apis/gpusharing.dev/v1alpha1/sharingrollouts/r", "", "");
    rollout("r", "Progressing", "v1-2");
    const Json node{{"name", "gpu-1"}, {"state", "Waiting"}, {"reason", "Deferred"}, {"message", "as reported"}};
    merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status",
          Json{{"status", {{"nodes", Json::array({node})}}}}.dump());
    (void)run(Verb::status, "r");
    const std::size_t at = out.str().find("  next: ");
    return at == std::string::npos ? std::string() : out.str().substr(at);
  };
  const std::string pods =
      "  next: kubectl get pods --all-namespaces --field-selector spec.nodeName=gpu-1  # the change waits for these "
      "pods, and begins once they have ended";
  const std::string ended = ". To cordon the node for them again: gpu-sharing-operator rollout start default";
  EXPECT_EQ(next(), pods + ended + "\n");
  const std::string deferral =
      print_deferral({target(), sim.clock.now() + std::chrono::hours(1), Deferral::By::person, ""});
  merge("/api/v1/nodes/gpu-1",
        Json{{"metadata", {{"annotations", {{std::string(kDeferredAnnotation), deferral}}}}}}.dump());
  EXPECT_EQ(next(), pods + ", not before the time in the node's message" + ended +
                        "; whoever uncordoned the node keeps the operator from it with kubectl annotate node gpu-1 "
                        "gpusharing.dev/hold=true\n");
}

// A hold is lifted by whoever set it: as annotation or as label, of a rollout or without one.
TEST_F(RolloutCommand, StatusOfAHeldNodeNamesItsHoldAndWhoeverSetIt) {
  const std::string lift =
      "  held: gpu-1 by annotation gpusharing.dev/hold=kernel-debug: whoever set it can lift it with kubectl annotate "
      "node gpu-1 gpusharing.dev/hold-\n";
  const Json held{{"reason", "Held"}, {"count", 1}, {"nodes", {"gpu-1"}}, {"message", "carries a hold"}};
  merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default/status",
        Json{{"status", {{"blocked", Json::array({held})}}}}.dump());
  merge("/api/v1/nodes/gpu-1", R"({"metadata":{"annotations":{"gpusharing.dev/hold":"kernel-debug"}}})");
  (void)run(Verb::status);
  EXPECT_THAT(out.str(), Not(HasSubstr("  next: "))) << "the hold is no mistake of whoever reads this";
  EXPECT_THAT(out.str(), testing::EndsWith("policy default waits: Held (gpu-1): carries a hold\n" + lift));
  rollout("r", "Progressing", "v1-2", "any", "version: v1\n", "default", "Held");
  const Json node{{"name", "gpu-1"}, {"state", "Held"}, {"reason", "Held"}, {"message", "as reported"}};
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status",
        Json{{"status", {{"nodes", Json::array({node})}}}}.dump());
  (void)run(Verb::status);
  EXPECT_THAT(out.str(), testing::EndsWith(lift));
  merge("/api/v1/nodes/gpu-1",
        R"({"metadata":{"annotations":{"gpusharing.dev/hold":null},"labels":{"gpusharing.dev/hold":"true"}}})");
  (void)run(Verb::status);
  EXPECT_THAT(out.str(),
              testing::EndsWith("  held: gpu-1 by label gpusharing.dev/hold=true: whoever set it can lift it with "
                                "kubectl label node gpu-1 gpusharing.dev/hold-\n"));
}

// Of a failed canary: the pod and how it ended, how to go back, and one command that retries all failed nodes.
TEST_F(RolloutCommand, StatusOfAFailedCanaryNamesThePodTheUndoAndOneRetry) {
  rollout("r", "Paused", "v1-2", "any", "version: v1\n", "default", "MaxFailures");
  (void)plugin_pod();
  const std::string ended = "pod plugin-1 container nvidia-device-plugin: Error no NVML";
  Json nodes = Json::array();
  for (const char* name : {"gpu-1", "gone-1", "gone-2"})
    nodes.push_back({{"name", name}, {"state", "Failed"}, {"reason", "VerificationFailed"}, {"message", ended}});
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status",
        Json{{"status", {{"nodes", nodes}, {"counts", {{"failed", 3}}}}}}.dump());
  record_an_earlier_text();
  fail("gpu-1");
  const std::string last =
      "  next: gpu-sharing-operator rollout undo r --dry-run  # to go back\n"
      "  next: gpu-sharing-operator rollout start default  # retries all failed nodes, once the cause is fixed\n";
  const auto next = [&] {
    EXPECT_EQ(run(Verb::status), 1) << err.str();
    EXPECT_THAT(out.str(), HasSubstr(ended));
    return out.str().substr(out.str().find("  next: "));
  };
  EXPECT_EQ(next(), "  next: kubectl describe pod plugin-1 --namespace gpu-operator  # gpu-1\n" + last);
  merge(
      "/api/v1/namespaces/gpu-operator/pods/plugin-1/status",
      R"({"status":{"phase":"Running","containerStatuses":[{"name":"nvidia-device-plugin","ready":false,"restartCount":3,
            "image":"i","imageID":"i","state":{"terminated":{"exitCode":1,"message":"no NVML"}}}]}})");
  EXPECT_EQ(
      next(),
      "  next: kubectl logs plugin-1 --namespace gpu-operator --container nvidia-device-plugin --previous  # gpu-1\n" +
          last);
}

// Before it fails: until when that can last, and how to go back.
TEST_F(RolloutCommand, StatusOfANodeThatIsLateNamesItsDeadlineAndTheUndo) {
  record_an_earlier_text();
  (void)plugin_pod();
  test::ChangeWords change;
  change.to = target();
  change.pods["plugin"] = {"replaced"};
  merge("/api/v1/nodes/gpu-1", Json{{"metadata", {{"annotations", test::write_change(change)}}}}.dump());
  rollout("r", "Progressing", target());
  const std::string deadline = "; if this lasts, the change fails at ";
  const std::string undo = "  next: gpu-sharing-operator rollout undo r --dry-run";
  (void)run(Verb::status);
  EXPECT_THAT(out.str(), testing::AllOf(HasSubstr("gpu-1"), Not(HasSubstr(deadline)), Not(HasSubstr(undo))));
  sim.clock.run_for(std::chrono::minutes(3));
  (void)run(Verb::status);
  EXPECT_THAT(out.str(), testing::AllOf(HasSubstr(deadline), HasSubstr(" at the latest (verifyTimeout 10m0s)"),
                                        HasSubstr(undo + "  # to go back, if the new profile is the cause\n")));
  merge("/api/v1/nodes/gpu-1/status", R"({"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}})");
  (void)run(Verb::status);
  EXPECT_THAT(out.str(), testing::AllOf(Not(HasSubstr(deadline)), Not(HasSubstr(undo))))
      << "no deadline runs, and the profile is not why a node is NotReady";
}

TEST_F(RolloutCommand, StatusOfAFailedFirstProfileNamesTheConfigMapBecauseNothingCanBeUndone) {
  rollout("r", "Paused", "v1-2", "any", "version: v1\n", "default", "MaxFailures");
  record_gpu_1("v1-0");
  EXPECT_EQ(run(Verb::status), 1) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("  next: kubectl edit configmap mps-config --namespace gpu-operator  # to correct "
                                   "key any: no earlier profile of it is on record\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("rollout undo")));
  EXPECT_EQ(run(Verb::undo), 2) << "it would refuse";
}

// Two stops are ended in one order: a resume of what is aborted would continue nothing.
TEST_F(RolloutCommand, StatusOfAnAbortedAndPausedRolloutNamesTheRetryAndThenTheResume) {
  const auto next = [&] {
    EXPECT_EQ(run(Verb::status), 1) << out.str() << err.str();
    const std::size_t at = out.str().find("  next: ");
    return at == std::string::npos ? std::string() : out.str().substr(at);
  };
  const std::string start = "  next: gpu-sharing-operator rollout start default";
  const std::string then = "  # then, because it is paused as well: gpu-sharing-operator rollout resume ";
  rollout("r", "Paused", "v1-2", "any", "version: v1\n", "default", "Paused");
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r", R"({"spec":{"paused":true,"aborted":true}})");
  EXPECT_EQ(next(), start + then + "r\n");
  merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default", R"({"spec":{"rollout":{"paused":true}}})");
  EXPECT_EQ(next(), start + then + "policy/default\n");
  merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default", R"({"spec":{"rollout":{"paused":false}}})");
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r", R"({"spec":{"paused":false}})");
  EXPECT_EQ(next(), start + "\n");
}

// Where the chart's own ConfigMap shows the Helm release, it is named.
TEST_F(RolloutCommand, StatusNamesTheHelmReleaseOfTheOperatorWhereItIsKnown) {
  post("/api/v1/namespaces/gpu-sharing-operator/configmaps",
       R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"gso-config",
           "labels":{"app.kubernetes.io/managed-by":"Helm"},"annotations":{"gpusharing.dev/crds":"",
           "meta.helm.sh/release-name":"gso","meta.helm.sh/release-namespace":"gpu-sharing-operator"}}})");
  post("/api/v1/namespaces/gpu-sharing-operator/configmaps",
       R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"another","labels":{
           "app.kubernetes.io/managed-by":"Helm"},"annotations":{"meta.helm.sh/release-name":"another"}}})");
  post("/apis/gpusharing.dev/v1alpha1/sharingrollouts",
       R"({"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingRollout","metadata":{"name":"default-mps-1"},
           "spec":{"policy":"default","daemonSet":"gso/mps","key":"","toRevision":"7c9d6b8f5"}})");
  sim.clock.run_for(std::chrono::seconds(1));
  const Json node{{"name", "gpu-1"}, {"state", "Waiting"}, {"reason", "Forbidden"}, {"message", "as reported"}};
  const Json status{{"phase", "Progressing"}, {"counts", {{"failed", 1}}}, {"nodes", Json::array({node})}};
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/default-mps-1/status", Json{{"status", status}}.dump());
  (void)run(Verb::status);
  EXPECT_THAT(out.str(), HasSubstr("  next: helm list --namespace gpu-sharing-operator  # names the chart of release "
                                   "gso; upgrade the release to that chart"));
  EXPECT_THAT(out.str(), HasSubstr("  next: helm rollback gso --namespace gpu-sharing-operator  # to go back; to go "
                                   "on, correct the standaloneMps values and upgrade the release\n"));
}

// The same command for several nodes is printed once.
TEST_F(RolloutCommand, StatusPrintsACommandOnceForAllNodesThatItIsFor) {
  post("/api/v1/nodes", R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"gpu-2",
      "labels":{"nvidia.com/gpu.present":"true","nvidia.com/gpu.count":"2"}},
      "status":{"capacity":{"nvidia.com/gpu":"4"},"allocatable":{"nvidia.com/gpu":"4"},
                "conditions":[{"type":"Ready","status":"True"}]}})");
  rollout("r", "Progressing", "v1-2");
  Json nodes = Json::array();
  for (const char* name : {"gpu-1", "gpu-2"})
    nodes.push_back({{"name", name}, {"state", "Waiting"}, {"reason", "PDBRefuses"}, {"message", "as reported"}});
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status", Json{{"status", {{"nodes", nodes}}}}.dump());
  (void)run(Verb::status);
  EXPECT_THAT(out.str(),
              HasSubstr("  next: kubectl get poddisruptionbudgets --all-namespaces  # the owners of the pods scale the "
                        "workload up, or whoever owns its PodDisruptionBudget changes it, so that a pod can be "
                        "evicted (gpu-1, gpu-2)\n"));
  const std::string said = out.str();
  const std::string decision = "spec.rollout.workloads: Interrupt: ";
  EXPECT_NE(said.find(decision), std::string::npos);
  EXPECT_EQ(said.find(decision), said.rfind(decision)) << "one decision is for both nodes";
}

}  // namespace
}  // namespace gso::rollout_next_test
