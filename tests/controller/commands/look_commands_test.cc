// explain, audit, plan --from-cluster and support-bundle on the simulated API server: what they read, what they say,
// and what they do without rights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "controller/cli/cli.h"
#include "controller/commands/commands.h"
#include "controller/commands/status.h"
#include "controller/reading/cluster_reader.h"
#include "controller/reading/operator_lease.h"
#include "reconcilers/cluster/manifests.h"
#include "reconcilers/explain/node.h"
#include "tests/controller/our_cluster.h"

namespace gso::look_commands_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

class LookCommands : public OurClusterWithoutCrds {
 protected:
  LookCommands() { post("/api/v1/namespaces", R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team"}})"); }
  void post_pod(const std::string& name, const std::string& limits, const std::string& node) {
    const Json container{{"name", "c"}, {"image", "i"}, {"resources", {{"limits", Json::parse("{" + limits + "}")}}}};
    Json spec{{"containers", Json::array({container})}};
    if (!node.empty()) spec["nodeName"] = node;
    const Json object{{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", {{"name", name}}}, {"spec", spec}};
    post("/api/v1/namespaces/team/pods", object.dump());
  }
  void forbid(const std::string& resource) {
    sim::FaultRule rule;
    rule.fault = sim::Fault::forbidden;
    rule.resource = resource;
    transport.faults().add(rule);
  }
  int explain(const std::vector<std::string>& what, OutputForm form = OutputForm::text) {
    out.str("");
    err.str("");
    const auto target = explain_target(what, "team");
    EXPECT_TRUE(target.has_value());
    return sim.run(explain_on_cluster(&client, &sim.clock, *target, form, PlannerSettings(), &out, &err));
  }
  int audit(OutputForm form = OutputForm::text) {
    out.str("");
    AuditOptions options;
    options.form = form;
    return sim.run(audit_cluster(&client, &sim.clock, options, PlannerSettings(), &out, &err));
  }
  PlanOptions plan_now() {
    PlanOptions options;
    options.json = true;
    options.now = k8s::format_time(sim.clock.now());
    return options;
  }
  Json live_plan() {
    out.str("");
    EXPECT_NE(sim.run(plan_cluster(&client, &sim.clock, plan_now(), &out, &err)), 2) << err.str();
    return Json::parse(out.str());
  }
  // The objects of the cluster as `kubectl get --output json` prints them.
  std::string manifests() {
    Json items = Json::array();
    const std::vector<std::vector<std::string>> kinds{{"/api/v1/nodes", "v1", "Node"},
                                                      {"/api/v1/configmaps", "v1", "ConfigMap"},
                                                      {"/apis/apps/v1/daemonsets", "apps/v1", "DaemonSet"},
                                                      {"/api/v1/pods", "v1", "Pod"}};
    for (const std::vector<std::string>& kind : kinds) {
      const Json list = get(kind[0]);
      for (Json item : list["items"]) {
        item["apiVersion"] = kind[1];
        item["kind"] = kind[2];
        items.push_back(std::move(item));
      }
    }
    return Json{{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(items)}}.dump();
  }
  Json plan_of_manifests() {
    out.str("");
    std::istringstream in(manifests());
    PlanOptions options = plan_now();
    options.files = {"-"};
    EXPECT_NE(run_plan(options, Options(), in, out, err), 2) << err.str();
    return Json::parse(out.str());
  }

  std::ostringstream out;
  std::ostringstream err;
};

TEST_F(LookCommands, ANodeIsExplainedWithWhoUsesIt) {
  post_pod("train", R"("nvidia.com/gpu":"1")", "gpu-1");
  EXPECT_EQ(explain({"gpu-1"}), 1) << "no pod of the plugin runs there" << out.str();
  EXPECT_THAT(out.str(), HasSubstr("node gpu-1: "));
  EXPECT_THAT(out.str(), testing::ContainsRegex("profile +mps-config/any [(]time-slicing, nvidia.com/gpu x 2[)]"));
  EXPECT_THAT(out.str(), HasSubstr("  team/train: nvidia.com/gpu=1\n"));
  EXPECT_THAT(out.str(), HasSubstr("No record of the operator was found"));
  EXPECT_EQ(explain({"node", "gpu-1"}, OutputForm::json), 1);
  EXPECT_EQ(Json::parse(out.str())["node"], "gpu-1");
  EXPECT_EQ(explain({"nobody"}), 2);
  EXPECT_THAT(err.str(), HasSubstr("node nobody not found; a pod is named NAMESPACE/POD"));
}

// An operator with max-mode Observe writes no record.
TEST_F(LookCommands, AnOperatorThatHasRecordedNothingIsNamedInsteadOfOneToInstall) {
  const Json spec{{"holderIdentity", "pod-1"},
                  {"renewTime", k8s::format_micro_time(sim.clock.now())},
                  {"leaseDurationSeconds", 3600}};
  post("/apis/coordination.k8s.io/v1/namespaces/gpu-sharing-operator/leases",
       Json{{"apiVersion", "coordination.k8s.io/v1"},
            {"kind", "Lease"},
            {"metadata", {{"name", "gpu-sharing-operator"}}},
            {"spec", spec}}
           .dump());
  std::ostringstream status;
  const k8s::ObjectKey lease{"gpu-sharing-operator", "gpu-sharing-operator"};
  EXPECT_EQ(
      sim.run(status_on_cluster(&client, &sim.clock, OutputForm::text, {}, PlannerSettings(), lease, &status, &err)), 0)
      << err.str();
  (void)explain({"gpu-1"});
  const std::string explained = out.str();
  (void)audit();
  for (const std::string& said : {status.str(), explained, out.str()}) {
    EXPECT_THAT(said, HasSubstr("an operator runs here (Lease gpu-sharing-operator/gpu-sharing-operator) and has "
                                "recorded nothing yet, as with max-mode Observe"));
    EXPECT_THAT(
        said,
        HasSubstr("Edits made before the first record are not rolled out by themselves when it is allowed to act: "
                  "`gpu-sharing-operator rollout start POLICY --adopt`"));
    EXPECT_THAT(said, Not(HasSubstr("No record of the operator was found")));
    EXPECT_THAT(said, Not(HasSubstr("If you install the operator now")));
    EXPECT_THAT(said, Not(HasSubstr("install one as")));
  }
}

// A fleet that nobody has recorded: each command assumes the same record, and says so.
TEST_F(LookCommands, StatusAndExplainHaveOneWordForANode) {
  const auto word_of_status = [&] {
    std::ostringstream document;
    EXPECT_NE(sim.run(status_on_cluster(&client, &sim.clock, OutputForm::json, {}, PlannerSettings(), {"ns", "lease"},
                                        &document, &err)),
              2);
    const Json status = Json::parse(document.str());
    EXPECT_EQ(status["baselineAssumed"], true);
    return status["nodes"][0]["state"].get<std::string>();
  };
  const auto word_of_explain = [&] {
    (void)explain({"gpu-1"}, OutputForm::json);
    return Json::parse(out.str())["state"].get<std::string>();
  };
  EXPECT_EQ(word_of_status(), "PreexistingDrift") << "no pod of the plugin runs there";
  EXPECT_EQ(word_of_explain(), "PreexistingDrift");
}

// "Not there" and "not understood" are different answers. The API server accepts such a number; 64 bits do not hold it.
TEST_F(LookCommands, AnObjectThatCannotBeReadIsNamed) {
  post("/api/v1/nodes", R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"gpu-2"}})");
  merge("/api/v1/nodes/gpu-2/status", R"({"status":{"capacity":{"nvidia.com/gpu":"9300P"}}})");
  (void)audit(OutputForm::json);
  const std::string incomplete = Json::parse(out.str())["incomplete"].dump();
  EXPECT_THAT(incomplete, HasSubstr("nodes that cannot be read: Node gpu-2: status."));
}

// Whoever asks what is wrong hears first that nothing is going to change.
TEST_F(LookCommands, ADeadOperatorIsSaidFirst) {
  post_pod("train", R"("nvidia.com/gpu":"1")", "gpu-1");
  post("/apis/coordination.k8s.io/v1/namespaces/gpu-sharing-operator/leases",
       R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"gpu-sharing-operator"},
           "spec":{"holderIdentity":"pod-1","leaseDurationSeconds":15,"renewTime":"2025-12-31T20:00:00.000000Z"}})");
  const std::string first =
      "No operator is running: pod-1 has not renewed the Lease since 2025-12-31T20:00:00Z (Lease "
      "gpu-sharing-operator/gpu-sharing-operator).";
  EXPECT_EQ(explain({"gpu-1"}), 1) << "it does not show its profile";
  EXPECT_THAT(out.str(), testing::StartsWith(first));
  (void)explain({"team/train"});
  EXPECT_THAT(out.str(), testing::StartsWith(first));
  EXPECT_EQ(audit(), 1) << "nothing is repaired until one runs";
  EXPECT_THAT(out.str(), testing::StartsWith(first));
  EXPECT_THAT(out.str(), HasSubstr("\nerror OperatorNotRunning: pod-1 has not renewed the Lease since"));
  EXPECT_EQ(explain({"gpu-1"}, OutputForm::json), 1);
  EXPECT_THAT(Json::parse(out.str())["operator"], HasSubstr("none: pod-1 has not renewed the Lease"));
  EXPECT_EQ(audit(OutputForm::json), 1);
  EXPECT_THAT(Json::parse(out.str())["operator"], HasSubstr("none: pod-1 has not renewed the Lease"));
  EXPECT_EQ(Json::parse(out.str())["problems"][0]["reason"], "OperatorNotRunning");
}

TEST_F(LookCommands, APodIsExplainedByWhatTheNodesHaveLeft) {
  post_pod("first", R"("nvidia.com/gpu":"3")", "gpu-1");
  post_pod("second", R"("nvidia.com/gpu":"2")", "");
  EXPECT_EQ(explain({"team/second"}), 1) << err.str();
  EXPECT_THAT(out.str(),
              HasSubstr("error AllInUse: one node (gpu-1) is suitable but full: 3 of 4 nvidia.com/gpu are in use"));
  EXPECT_EQ(explain({"pod", "second"}, OutputForm::yaml), 1);
  EXPECT_THAT(out.str(), HasSubstr("causes:\n- severity: error\n  code: AllInUse\n"));
  EXPECT_EQ(explain({"team/nobody"}), 2);
}

// A quota refuses the pods of a workload before they exist: nothing of them can be read, and people know its name
// alone.
TEST_F(LookCommands, AWorkloadWhosePodsAreRefusedExplainsThem) {
  const char* resources = R"({"limits":{"nvidia.com/gpu":"2"},"requests":{"nvidia.com/gpu":"2"}})";
  const Json container{{"name", "c"}, {"image", "i"}, {"resources", Json::parse(resources)}};
  const Json labels{{"app", "web"}};
  const Json of_pods{{"metadata", {{"labels", labels}}}, {"spec", {{"containers", Json::array({container})}}}};
  const Json spec{{"replicas", 2}, {"selector", {{"matchLabels", labels}}}, {"template", of_pods}};
  post("/apis/apps/v1/namespaces/team/deployments",
       Json{{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"metadata", {{"name", "web"}}}, {"spec", spec}}.dump());
  EXPECT_EQ(explain({"team/web"}), 2);
  EXPECT_THAT(err.str(), HasSubstr("\"web\" not found"));
  EXPECT_THAT(err.str(), HasSubstr("Deployment web exists and reports no pod that it cannot create: name one of its "
                                   "pods (`kubectl get pods --namespace team`)\n"));
  merge("/apis/apps/v1/namespaces/team/deployments/web/status",
        R"({"status":{"conditions":[{"type":"ReplicaFailure","status":"True","reason":"FailedCreate","message":
            "pods \"web-1\" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=2, used: requests.nvidia.com/gpu=0, limited: requests.nvidia.com/gpu=1"}]}})");
  EXPECT_EQ(explain({"team/web"}), 1) << err.str();
  EXPECT_THAT(out.str(), testing::StartsWith("No operator was ever seen"));
  EXPECT_THAT(out.str(), HasSubstr("pod team/web: not created by Deployment web, which has 0 of 2 pods\n"
                                   "  requests nvidia.com/gpu=2\n"
                                   "error QuotaRefuses: Deployment web cannot create its pods: they would exceed "
                                   "ResourceQuota gpus of namespace team (requested: requests.nvidia.com/gpu=2, "));
  EXPECT_THAT(out.str(), HasSubstr("\n  kubectl describe resourcequota gpus --namespace team\n"));
  EXPECT_EQ(explain({"team/web"}, OutputForm::json), 1);
  EXPECT_EQ(Json::parse(out.str())["causes"][0]["code"], "QuotaRefuses");
}

TEST_F(LookCommands, APodThatWasNeverCreatedIsLookedForInWhatCanBeRead) {
  EXPECT_EQ(explain({"team/web"}), 2);
  EXPECT_THAT(err.str(), HasSubstr("A pod that was never created (ResourceQuota, admission) is reported in the Events "
                                   "of its workload: `kubectl get events --namespace team --field-selector "
                                   "reason=FailedCreate`\n"));
  EXPECT_THAT(err.str(), Not(HasSubstr("incomplete: ")));
  forbid("deployments");
  EXPECT_EQ(explain({"team/web"}), 2);
  EXPECT_THAT(err.str(), HasSubstr("\nincomplete: deployments of namespace team cannot be "));
}

TEST_F(LookCommands, WithoutTheRightToListPodsTheRestIsSaid) {
  post_pod("first", R"("nvidia.com/gpu":"4")", "gpu-1");
  post_pod("second", R"("nvidia.com/gpu":"1")", "");
  sim::FaultRule rule;
  rule.fault = sim::Fault::forbidden;
  rule.resource = "pods";
  rule.verb = "list";
  transport.faults().add(rule);
  EXPECT_EQ(explain({"team/second"}), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("NotScheduledYet"));
  EXPECT_THAT(out.str(), HasSubstr("incomplete: pods cannot be listed by "));
}

TEST_F(LookCommands, TargetsAreNamedInFewWays) {
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{}, {"a", "b", "c"}, {"job", "x"}, {"a/b/c"}, {"/x"}, {"x/"}, {"node", "a/b"}}) {
    EXPECT_FALSE(explain_target(wrong, "ns").has_value()) << wrong.size();
  }
  EXPECT_FALSE(explain_target({"n"}, "ns")->pod);
  EXPECT_EQ(explain_target({"pod", "p"}, "ns")->key, (k8s::ObjectKey{"ns", "p"}));
  EXPECT_EQ(explain_target({"a/p"}, "ns")->key, (k8s::ObjectKey{"a", "p"}));
  EXPECT_FALSE(explain_target({"node/n"}, "ns")->pod) << "as kubectl prints it";
  EXPECT_EQ(explain_target({"node/n"}, "ns")->key, (k8s::ObjectKey{"", "n"}));
  EXPECT_EQ(explain_target({"pod/p"}, "ns")->key, (k8s::ObjectKey{"ns", "p"}));
  EXPECT_TRUE(names_a_pod_alone({"pod/p"}));
  EXPECT_EQ(explain_target({"pod", "node/p"}, "ns")->key, (k8s::ObjectKey{"node", "p"}));
}

TEST_F(LookCommands, AnAuditIsOnePageAndOneWhereThereAreErrors) {
  EXPECT_EQ(audit(), 1) << out.str();
  EXPECT_THAT(out.str(), HasSubstr("1 GPU node with 2 GPUs: plugin v0.17.1 on 1; profile mps-config/any on 1\n"));
  EXPECT_THAT(out.str(),
              HasSubstr("error PreexistingDrift: a pod of the plugin, GFD or MPS is missing or not Ready\n    gpu-1\n"
                        "    no pod of DaemonSet gpu-operator/nvidia-device-plugin-daemonset runs on node gpu-1\n"));
  merge(
      "/api/v1/namespaces/gpu-operator/configmaps/mps-config",
      R"({"data":{"any":"version: v1\nsharing:\n  mps:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 1}\n"}})");
  EXPECT_EQ(audit(OutputForm::json), 1);
  const Json document = Json::parse(out.str());
  EXPECT_GE(document["summary"]["errors"], 1);
  EXPECT_TRUE(document["incomplete"].empty());
  forbid("nodes");
  EXPECT_EQ(audit(), 2);
}

// A clean bill in a pipeline, from an account that is not allowed to read profiles, would be worse than none.
TEST_F(LookCommands, WithoutTheRightToReadWhatPluginsLoadThereIsNoAllClear) {
  forbid("configmaps");
  EXPECT_EQ(audit(), 2) << out.str();
  EXPECT_THAT(out.str(), HasSubstr("Nodes not checked: "));
  EXPECT_THAT(out.str(), HasSubstr("of the device plugin in gpu-operator cannot be read"));
  EXPECT_EQ(audit(OutputForm::json), 2);
  EXPECT_FALSE(Json::parse(out.str())["incomplete"].empty());
  out.str("");
  EXPECT_EQ(sim.run(plan_cluster(&client, &sim.clock, PlanOptions(), &out, &err)), 2) << out.str();
  EXPECT_THAT(err.str(), HasSubstr("Nodes not checked: "));
}

// Without that right, a dead operator looks like one at work.
TEST_F(LookCommands, WithoutTheRightToReadTheLeaseItIsSaidThatNobodyKnowsWhetherAnOperatorRuns) {
  const char* unknown =
      "incomplete: whether an operator runs is unknown: Lease gpu-sharing-operator/gpu-sharing-operator";
  const char* rule = "{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get]}";
  EXPECT_EQ(audit(), 1);
  EXPECT_THAT(out.str(), Not(HasSubstr(unknown)));
  forbid("leases");
  EXPECT_EQ(audit(), 1);
  EXPECT_THAT(out.str(), testing::AllOf(HasSubstr(unknown), HasSubstr(rule)));
  EXPECT_EQ(audit(OutputForm::json), 1);
  EXPECT_THAT(Json::parse(out.str())["incomplete"].dump(), HasSubstr("whether an operator runs is unknown"));
  EXPECT_EQ(explain({"gpu-1"}), 1) << err.str();
  EXPECT_THAT(out.str(), testing::AllOf(HasSubstr(unknown), HasSubstr(rule)));
  out.str("");
  const k8s::ObjectKey lease{"gpu-sharing-operator", "gpu-sharing-operator"};
  (void)sim.run(
      status_on_cluster(&client, &sim.clock, OutputForm::text, NodeFilter(), PlannerSettings(), lease, &out, &err));
  EXPECT_THAT(out.str(), testing::AllOf(HasSubstr(unknown), HasSubstr(rule)));
  err.str("");
  (void)live_plan();
  EXPECT_THAT(err.str(), testing::AllOf(HasSubstr(unknown), HasSubstr(rule)));
}

TEST_F(LookCommands, ThePlanSaysFirstThatNoOperatorRuns) {
  (void)live_plan();
  EXPECT_THAT(err.str(), testing::StartsWith("No operator was ever seen in namespace gpu-sharing-operator: Lease "));
}

TEST_F(LookCommands, ThePlanOfTheLiveClusterIsThatOfItsManifests) {
  post_pod("train", R"("nvidia.com/gpu":"1")", "gpu-1");
  const Json sound = live_plan();
  ASSERT_FALSE(sound["actions"].empty());  // The baseline.
  EXPECT_EQ(sound["actions"][0]["action"], "WriteConfigMap");
  EXPECT_EQ(sound, plan_of_manifests());
  merge(
      "/api/v1/namespaces/gpu-operator/configmaps/mps-config",
      R"({"data":{"any":"version: v1\nsharing:\n  mps:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 1}\n"}})");
  const Json broken = live_plan();
  EXPECT_FALSE(broken["findings"].empty());
  EXPECT_EQ(broken, plan_of_manifests());
}

TEST_F(LookCommands, AShellIsOfferedTheNamesThatThereAre) {
  post_pod("first", R"("nvidia.com/gpu":"4")", "gpu-1");
  using Kind = NameQuestion::Kind;
  const std::vector<NameQuestion> questions{{Kind::rollout, "", "", ""},  // Not served.
                                            {Kind::node, "", "", ""},
                                            {Kind::pod, "", "team/", ""}};
  EXPECT_THAT(sim.run(list_names(&client, &sim.clock, questions, "team")), testing::ElementsAre("gpu-1", "team/first"));
  forbid("nodes");
  EXPECT_THAT(sim.run(list_names(&client, &sim.clock, questions, "team")), testing::ElementsAre("team/first"));
}

TEST_F(LookCommands, AHoldThatDoesNotHoldIsSaid) {
  merge("/api/v1/nodes/gpu-1", R"({"metadata":{"annotations":{"gpusharing.dev/hold":""}}})");
  merge("/api/v1/namespaces/gpu-operator/configmaps/mps-config",
        R"({"metadata":{"annotations":{"gpusharing.dev/paused":""}}})");
  EXPECT_EQ(explain({"gpu-1"}), 1) << err.str();
  const char* hold =
      "warning HoldIgnored: annotation gpusharing.dev/hold has no value, so it does not hold the node. To hold "
      "the node: `kubectl annotate node gpu-1 gpusharing.dev/hold=true --overwrite`. To remove it: `kubectl annotate "
      "node gpu-1 gpusharing.dev/hold-`\n";
  EXPECT_THAT(out.str(), HasSubstr(hold));
  EXPECT_EQ(audit(), 1);  // The plugin's pod is missing as well.
  EXPECT_THAT(out.str(), HasSubstr("HoldIgnored"));
  EXPECT_THAT(out.str(),
              HasSubstr("PausedIgnored: annotation gpusharing.dev/paused has no value, so it does not pause"));
  for (const char* meant : {"true", "false", "Yes", "0"}) {
    merge("/api/v1/nodes/gpu-1",
          std::string(R"({"metadata":{"annotations":{"gpusharing.dev/hold":")") + meant + "\"}}}");
    (void)explain({"gpu-1"});
    EXPECT_THAT(out.str(), Not(HasSubstr("HoldIgnored"))) << meant;
  }
}

// A table of three wide columns would be broken into a staircase.
TEST(Explanations, ShowExpectedAndActualBelowEachOtherWhereTheTableIsWiderThanTheTerminal) {
  NodeExplanation node;
  node.node = "a100-01";
  node.rows = {
      {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb-SHARED", "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"},
      {"nvidia.com/gpu.replicas", "4", "4"}};
  const auto text = [&](std::size_t columns) {
    std::ostringstream out;
    print_explanation(node, out, columns);
    return out.str();
  };
  EXPECT_THAT(text(80), HasSubstr("  CHECK\n"
                                  "  nvidia.com/gpu.product   differs\n"
                                  "    expected   NVIDIA-A100-SXM4-80GB-MIG-1g.10gb-SHARED\n"
                                  "    actual     NVIDIA-A100-SXM4-80GB-MIG-1g.10gb\n"
                                  "  nvidia.com/gpu.replicas   4\n"));
  for (const std::size_t columns : {std::size_t{0}, std::size_t{140}}) {
    EXPECT_THAT(text(columns), testing::ContainsRegex("  CHECK +EXPECTED +ACTUAL\n")) << columns;
    EXPECT_THAT(text(columns), testing::ContainsRegex("gpu.product .*SHARED +NVIDIA.* differs\n")) << columns;
  }
}

// The answer is not buried under what needs no action.
TEST(Explanations, NameFindingsThatNeedNoActionInOneLineAtTheEnd) {
  NodeExplanation node;
  node.node = "a100-01";
  node.next = {"gpu-sharing-operator rollout status"};
  const ObjectRef object{"v1", "Node", "", "a100-01", ""};
  node.findings = {{Severity::info, object, {"MPSSidecarCannotSignal", "a long text"}},
                   {Severity::info, object, {"PolicyPaused", "what a person has set"}},
                   {Severity::info, object, {"DefaultFirstStart", "another long text"}}};
  node.remedies = {{"MPSSidecarCannotSignal", "no action needed while an operator runs"},
                   {"DefaultFirstStart", "no action needed"}};
  std::ostringstream out;
  print_explanation(node, out);
  EXPECT_THAT(out.str(), testing::EndsWith("info PolicyPaused: what a person has set\n"
                                           "next: gpu-sharing-operator rollout status\n"
                                           "2 infos need no action while an operator runs: DefaultFirstStart, "
                                           "MPSSidecarCannotSignal (their texts: -o yaml)\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("long text")));
}

// Leases of one list are of one moment: the newest of them says when that was.
TEST(OperatorLease, AmongManifestsItIsJudgedByTheNewestLease) {
  const auto lease = [](const std::string& ns, const std::string& name, const std::string& renewed) {
    const Json spec{{"holderIdentity", "pod-1"}, {"leaseDurationSeconds", 15}, {"renewTime", renewed}};
    return Json{{"metadata", {{"namespace", ns}, {"name", name}}}, {"spec", spec}}.dump();
  };
  const k8s::ObjectKey operators{"gpu-sharing-operator", "gpu-sharing-operator"};
  const std::string node = lease("kube-node-lease", "gpu-1", "2026-01-01T01:00:00.000000Z");
  const std::string fresh = lease(operators.ns, operators.name, "2026-01-01T00:59:50.000000Z");
  const std::string stale = lease(operators.ns, operators.name, "2026-01-01T00:10:00.000000Z");
  EXPECT_FALSE(no_operator_among({}, operators));
  EXPECT_FALSE(no_operator_among({node}, operators)) << "it is not in the file";
  EXPECT_FALSE(no_operator_among({stale}, operators)) << "it is unknown when the file was written";
  EXPECT_FALSE(no_operator_among({fresh, node}, operators));
  const auto none = no_operator_among({node, stale}, operators);
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->was_running);
  EXPECT_EQ(none->why,
            "pod-1 had last renewed the Lease at 2026-01-01T00:10:00Z, and the newest of the Leases that were read was "
            "renewed at 2026-01-01T01:00:00Z");
}

}  // namespace
}  // namespace gso::look_commands_test
