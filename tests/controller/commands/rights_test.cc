// What commands say and do for somebody who is not allowed to read everything: RBAC's refusals on the simulated API
// server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "controller/commands/commands.h"
#include "controller/commands/rollout/rollout.h"
#include "controller/commands/status.h"
#include "controller/reading/cluster_reader.h"
#include "k8sclient/api/client.h"
#include "reconcilers/cluster/manifests.h"
#include "reconcilers/profile/profile.h"
#include "tests/change_words/change_words.h"
#include "tests/controller/authorizing_transport.h"
#include "tests/controller/commands/rollout_commands.h"
#include "tests/controller/our_cluster.h"
#include "tests/controller/unpacked.h"

namespace gso::rights_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

const std::vector<std::string> kList{"list"};
const RbacRule kNodes{{""}, {"nodes"}, kList, ""};
const RbacRule kDaemonSets{{"apps"}, {"daemonsets"}, kList, ""};
const RbacRule kOurs{{"gpusharing.dev"}, {"sharingpolicies", "sharingrollouts"}, kList, ""};
const RbacRule kOperands{{"", "apps"}, {"configmaps", "pods", "controllerrevisions"}, kList, ""};

class Rights : public OurCluster {
 protected:
  Rights() { post("/api/v1/namespaces", R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team"}})"); }

  void may(std::vector<RbacRule> rules) {
    guard = std::make_unique<AuthorizingTransport>(&transport, std::move(rules));
    mine = std::make_unique<k8s::ApiClient>(guard.get(), &sim.clock, k8s::ClientOptions());
    out.str("");
    err.str("");
  }
  int explain(const std::vector<std::string>& what, OutputForm form = OutputForm::text) {
    const auto target = explain_target(what, "team");
    EXPECT_TRUE(target.has_value());
    return sim.run(explain_on_cluster(mine.get(), &sim.clock, *target, form, PlannerSettings(), &out, &err));
  }
  int rollout(RolloutOptions::Verb verb) {
    RolloutOptions options;
    options.verb = verb;
    return sim.run(rollout_command(mine.get(), &sim.clock, options, PlannerSettings(), "", &out, &err));
  }
  int check(bool writes = false) {
    CheckOptions options;
    options.writes = writes;
    options.timeout = std::chrono::seconds(1);
    return sim.run(check_on_cluster(mine.get(), &sim.clock, Options(), options, &out, &err));
  }
  std::string status() {
    World world;
    std::vector<std::string> incomplete;
    const k8s::Result<void> read = sim.run(read_world(mine.get(), PlannerSettings(), &world, &incomplete));
    EXPECT_TRUE(read.has_value());
    FleetIndex index;
    const PlannerSettings settings;
    index.refresh(world, settings);
    print_status({world, index, settings, sim.clock.now(), incomplete}, {}, out);
    return out.str();
  }
  bool is_paused() {
    const Json map = get("/api/v1/namespaces/gpu-operator/configmaps/mps-config");
    return map["metadata"].value("annotations", Json::object()).contains("gpusharing.dev/paused");
  }

  std::unique_ptr<AuthorizingTransport> guard;
  std::unique_ptr<k8s::ApiClient> mine;
  std::ostringstream out;
  std::ostringstream err;
};

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t out = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++out;
  return out;
}

TEST_F(Rights, WhatCannotBeReadIsNotCalledAbsent) {
  may({kNodes, kDaemonSets, kOurs});
  EXPECT_THAT(status(), testing::ContainsRegex("gpu-1 +Unknown .*could not be read"));
  EXPECT_THAT(out.str(), Not(HasSubstr("does not exist")));
  EXPECT_THAT(out.str(),
              HasSubstr("incomplete: configmaps of namespace gpu-operator cannot be listed by user \"oncall\". "
                        "Missing permission: add {apiGroups: [\"\"], resources: [configmaps], verbs: [list]} to a "
                        "Role of that namespace (docs/rights.md)\n"));
  EXPECT_EQ(count_of(out.str(), "pods of namespace gpu-operator cannot"), 1U) << out.str();
  out.str("");
  EXPECT_EQ(explain({"gpu-1"}), 2) << out.str();
  EXPECT_THAT(out.str(), Not(HasSubstr("does not exist")));
  EXPECT_THAT(out.str(), HasSubstr("node gpu-1: Unknown"));
  EXPECT_THAT(out.str(), HasSubstr("next: kubectl auth can-i list configmaps --namespace gpu-sharing-operator"));
}

// Pods that are not allowed to be read are not missing: nothing is concluded about the nodes, and the permission is
// named.
TEST_F(Rights, PodsThatCannotBeReadAreNotCalledMissing) {
  post("/api/v1/namespaces/gpu-sharing-operator/configmaps", state_of(FleetRecord()));
  const RbacRule without_pods{{"", "apps"}, {"configmaps", "controllerrevisions"}, kList, ""};
  may({kNodes, kDaemonSets, kOurs, without_pods});
  EXPECT_EQ(sim.run(audit_cluster(mine.get(), &sim.clock, AuditOptions(), PlannerSettings(), &out, &err)), 2)
      << out.str();
  EXPECT_THAT(out.str(), AllOf(HasSubstr("Nodes not checked: "), Not(HasSubstr("Drift")),
                               Not(HasSubstr("no pod of DaemonSet")), HasSubstr("\n0 errors, ")));
  out.str("");
  EXPECT_EQ(explain({"gpu-1"}), 2) << out.str();
  EXPECT_THAT(out.str(), AllOf(HasSubstr("node gpu-1: Unknown"), Not(HasSubstr("Drift")),
                               HasSubstr("next: kubectl auth can-i list pods --namespace gpu-operator\n")));
}

// What was not read is neither gone nor without effect: no command that forgets stops is offered.
TEST_F(Rights, PoliciesThatCannotBeReadAreNotCalledGone) {
  FleetRecord kept;
  kept.policies["research"] = gone_policy("research", R"({"rollout":{"paused":true}})", sim.clock.now());
  post("/api/v1/namespaces/gpu-sharing-operator/configmaps", state_of(kept));
  const auto concludes_nothing =
      AllOf(Not(HasSubstr("CRDsGone")), Not(HasSubstr("PolicyGone")), Not(HasSubstr("forget-policies")),
            Not(HasSubstr("crds/")), Not(HasSubstr("not installed")));
  may({kNodes, kDaemonSets, kOperands});
  EXPECT_NE(sim.run(audit_cluster(mine.get(), &sim.clock, AuditOptions(), PlannerSettings(), &out, &err)), 0);
  EXPECT_THAT(out.str(), testing::StartsWith("incomplete: sharingpolicies cannot be listed by user \"oncall\""));
  EXPECT_THAT(out.str(), HasSubstr("Policies and stopped rollouts not checked"));
  EXPECT_THAT(out.str(), concludes_nothing);
  out.str("");
  EXPECT_EQ(sim.run(plan_cluster(mine.get(), &sim.clock, PlanOptions(), &out, &err)), 2);
  EXPECT_THAT(out.str(), testing::StartsWith("Nothing is planned from what could not be read.\n"));
  EXPECT_THAT(out.str() + err.str(), concludes_nothing);
  out.str("");
  (void)explain({"gpu-1"});
  EXPECT_THAT(out.str(), concludes_nothing);
}

// Without the operator's record: only what the nodes' annotations and the SharingRollouts say.
TEST_F(Rights, WithoutTheRecordNodesAreUnknownAndTheirFailuresAreStillNamed) {
  post("/api/v1/namespaces/gpu-sharing-operator/configmaps", state_of(FleetRecord()));
  const RbacRule operands{{"", "apps"}, {"configmaps", "pods", "controllerrevisions"}, kList, "gpu-operator"};
  may({kNodes, kDaemonSets, kOurs, operands, {{""}, {"pods"}, kList, ""}});
  EXPECT_THAT(status(), testing::ContainsRegex("gpu-1 +Unknown .*record"));
  EXPECT_THAT(out.str(), Not(HasSubstr("Unrecorded")));
  out.str("");
  EXPECT_EQ(explain({"gpu-1"}), 2);
  EXPECT_THAT(out.str(), AllOf(HasSubstr("node gpu-1: Unknown"), Not(HasSubstr("no record of the profile"))));
  const auto audited = [&] {
    out.str("");
    return sim.run(audit_cluster(mine.get(), &sim.clock, AuditOptions(), PlannerSettings(), &out, &err));
  };
  EXPECT_EQ(audited(), 2) << out.str();
  EXPECT_THAT(out.str(), HasSubstr("States of nodes not checked: the operator's record, ConfigMap "
                                   "gpu-sharing-operator/gpu-sharing-operator-state, cannot be read"));
  test::ChangeWords change;
  change.to = "v1-0123456789ab";
  change.failed = true;
  merge("/api/v1/nodes/gpu-1", Json{{"metadata", {{"annotations", test::write_change(change)}}}}.dump());
  EXPECT_EQ(audited(), 1) << out.str();
  EXPECT_THAT(out.str(), HasSubstr("error VerificationFailed"));
  out.str("");
  EXPECT_THAT(status(), testing::ContainsRegex("gpu-1 +Failed"));
}

// On-call people add `-n` by habit.
TEST_F(Rights, AWrongNamespaceIsNoProofThatNoOperatorRuns) {
  post("/api/v1/namespaces", R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"elsewhere"}})");
  merge("/api/v1/nodes/gpu-1", R"({"metadata":{"annotations":{"gpusharing.dev/revision":"v1-0123456789ab"}}})");
  PlannerSettings settings;
  settings.operator_namespace = "elsewhere";
  (void)sim.run(audit_cluster(&client, &sim.clock, AuditOptions(), settings, &out, &err));
  EXPECT_THAT(out.str(), testing::StartsWith("No operator was ever seen in namespace elsewhere"));
  EXPECT_THAT(out.str(), HasSubstr("incomplete: the operator's record was not found: ConfigMap "
                                   "elsewhere/gpu-sharing-operator-state does not exist, but nodes or policies show"));
  EXPECT_THAT(out.str(), AllOf(Not(HasSubstr("--adopt")), Not(HasSubstr("taken as the baseline"))));
}

// The nodes cannot be judged there, so the counts stay those of the rollout's status.
TEST_F(Rights, RolloutStatusInAWrongNamespaceShowsWhatWasReportedWithExitStatusTwo) {
  post("/api/v1/namespaces", R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"elsewhere"}})");
  merge("/api/v1/nodes/gpu-1", R"({"metadata":{"annotations":{"gpusharing.dev/revision":"v1-0123456789ab"}}})");
  post("/apis/gpusharing.dev/v1alpha1/sharingpolicies",
       R"({"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingPolicy","metadata":{"name":"default"},"spec":{}})");
  const Json map = get("/api/v1/namespaces/gpu-operator/configmaps/mps-config");
  const std::string target = revision_of(parse_profile(map["data"]["any"].get<std::string>()).profile);
  const Json spec{
      {"policy", "default"}, {"configMap", "gpu-operator/mps-config"}, {"key", "any"}, {"toRevision", target}};
  const Json object{{"apiVersion", "gpusharing.dev/v1alpha1"},
                    {"kind", "SharingRollout"},
                    {"metadata", {{"name", "r"}}},
                    {"spec", spec}};
  post("/apis/gpusharing.dev/v1alpha1/sharingrollouts", object.dump());
  merge(
      "/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status",
      R"({"status":{"phase":"Progressing","wave":1,"counts":{"total":11,"updated":2,"inProgress":1,"pending":8,"blocked":0,"failed":0}}})");
  PlannerSettings settings;
  settings.operator_namespace = "elsewhere";
  RolloutOptions options;
  options.verb = RolloutOptions::Verb::status;
  EXPECT_EQ(sim.run(rollout_command(&client, &sim.clock, options, settings, "", &out, &err)), 2);
  EXPECT_THAT(err.str(), HasSubstr("incomplete: the operator's record was not found: ConfigMap "
                                   "elsewhere/gpu-sharing-operator-state does not exist"));
  EXPECT_THAT(out.str(),
              HasSubstr("] 2/11 up to date, 1 in progress, 8 pending, 0 blocked, 0 failed, as last reported; "
                        "wave 1\n"));
}

TEST_F(Rights, ASupportBundleWithoutNodesHoldsWhatCanBeReadAndNamesWhatIsMissing) {
  post("/apis/gpusharing.dev/v1alpha1/sharingpolicies",
       R"({"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingPolicy","metadata":{"name":"default"},"spec":{}})");
  may({kOurs});
  std::vector<std::string> missing;
  const k8s::Result<std::string> bundle = sim.run(support_bundle(mine.get(), &sim.clock, Options(), &missing));
  ASSERT_TRUE(bundle.has_value()) << bundle.error().message;
  const std::string bytes = unpacked(*bundle);
  EXPECT_THAT(bytes, HasSubstr("objects/sharingpolicies.json"));
  EXPECT_THAT(bytes, HasSubstr("version.txt"));
  EXPECT_THAT(bytes, Not(HasSubstr("ALLOCATABLE"))) << "no status without nodes";
  ASSERT_GE(missing.size(), 2U);
  EXPECT_THAT(missing[0], HasSubstr("nodes cannot be listed by user \"oncall\""));
  EXPECT_THAT(missing[1], HasSubstr("status.txt, rollout-status.txt, explain.txt, plan.txt and audit.txt are missing"));
  EXPECT_EQ(std::ranges::count(missing, missing[0]), 1);
}

TEST_F(Rights, NoSwitchIsSetWhereTheOperatorsKindsCannotBeRead) {
  may({kNodes, kDaemonSets, kOperands, {{""}, {"configmaps"}, {"patch"}, ""}});
  EXPECT_EQ(rollout(RolloutOptions::Verb::pause), 2);
  EXPECT_THAT(err.str(), HasSubstr("SharingRollouts cannot be read"));
  EXPECT_THAT(err.str(), HasSubstr("{apiGroups: [gpusharing.dev], resources: [sharingrollouts], verbs: [list]}"));
  EXPECT_FALSE(is_paused());
}

TEST_F(Rights, CheckDistinguishesWhatCannotBeReadFromWhatIsNotServed) {
  may({kNodes, kDaemonSets, kOperands});
  EXPECT_EQ(check(), 1);
  EXPECT_THAT(out.str(), HasSubstr("MISSING the SharingPolicy/SharingRollout CRDs cannot be read"));
  EXPECT_THAT(out.str(), Not(HasSubstr("are not served")));
  EXPECT_THAT(out.str(),
              HasSubstr("MISSING leases of namespace gpu-sharing-operator cannot be read by user \"oncall\""));
}

TEST_F(Rights, CheckNamesTheWritesThatTheAccountIsNotAllowedToSend) {
  const RbacRule nodes{{""}, {"nodes"}, {"patch"}, ""};
  const RbacRule ours{{"gpusharing.dev"},
                      {"sharingpolicies/status", "sharingrollouts/status", "sharingrollouts"},
                      {"patch", "create"},
                      ""};
  const RbacRule events{{"events.k8s.io"}, {"events"}, {"create"}, ""};
  const RbacRule leases{{"coordination.k8s.io"}, {"leases"}, {"get", "update"}, "gpu-sharing-operator"};
  const RbacRule config_maps{{""}, {"configmaps"}, {"patch"}, ""};
  const RbacRule pods{{""}, {"pods"}, {"delete"}, "gpu-operator"};
  may({kNodes, kDaemonSets, kOperands, kOurs, nodes, ours, events, leases, config_maps});
  (void)check(true);
  EXPECT_THAT(out.str(), HasSubstr("MISSING permission to delete pods in namespace gpu-operator\n"));
  EXPECT_EQ(count_of(out.str(), "MISSING permission"), 1U) << out.str();
  out.str("");
  (void)check();
  EXPECT_EQ(count_of(out.str(), "MISSING permission"), 0U) << "a person's account is not asked";
  may({kNodes, kDaemonSets, kOperands, kOurs, nodes, ours, events, leases, config_maps, pods});
  out.str("");
  (void)check(true);
  EXPECT_THAT(out.str(), HasSubstr("ok      all 9 write permissions that rollouts need are granted\n"));
}

TEST_F(Rights, CheckMissesTheOneOfOurCrdsThatIsGone) {
  may({kNodes, kDaemonSets, kOperands, kOurs});
  EXPECT_EQ(check(), 1);  // No leader.
  EXPECT_THAT(out.str(), HasSubstr("ok      the SharingPolicy/SharingRollout CRDs are installed"));
  out.str("");
  const k8s::HttpResponse gone =
      send(k8s::Method::del, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/sharingrollouts.gpusharing.dev");
  ASSERT_EQ(gone.status, 200) << gone.body;
  sim.clock.run_for(std::chrono::seconds(5));
  EXPECT_EQ(check(), 1);
  EXPECT_THAT(out.str(), HasSubstr("MISSING CRD sharingrollouts.gpusharing.dev is not installed"));
}

TEST_F(OurClusterWithoutCrds, CheckMissesBothOfOurCrdsUnlessTheyAreLeftOutOnPurpose) {
  CheckOptions options;
  options.timeout = std::chrono::seconds(1);
  const auto says = [&] {
    std::ostringstream out;
    std::ostringstream err;
    (void)sim.run(check_on_cluster(&client, &sim.clock, Options(), options, &out, &err));
    return out.str();
  };
  const std::string what =
      "the SharingPolicy/SharingRollout CRDs are not installed in this cluster; the record is kept "
      "in the state ConfigMap";
  EXPECT_THAT(says(), AllOf(HasSubstr("MISSING " + what + ". "),
                            HasSubstr("Install the CRDs: `kubectl apply --server-side -f crds/`"),
                            HasSubstr("--without-crds")));
  options.without_crds = true;
  EXPECT_THAT(says(), HasSubstr("ok      " + what + "\n"));
}

// Rights in one namespace only: what a team has.
TEST_F(Rights, APodIsExplainedToWhoMayReadItsNamespaceOnly) {
  const char* limits = R"("resources":{"limits":{"nvidia.com/gpu":"1"},"requests":{"nvidia.com/gpu":"1"}})";
  post("/api/v1/namespaces/team/pods",
       std::string(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"runs"},"spec":{"nodeName":"gpu-1",
         "containers":[{"name":"c","image":"i",)") +
           limits + "}]}}");
  post("/api/v1/namespaces/team/pods",
       std::string(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"waits"},"spec":{
         "containers":[{"name":"c","image":"i",)") +
           limits + "}]}}");
  merge("/api/v1/namespaces/team/pods/waits/status",
        R"({"status":{"conditions":[{"type":"PodScheduled","status":"False",
    "reason":"Unschedulable","message":"0/1 nodes are available: 1 Insufficient nvidia.com/gpu."}]}})");
  post("/api/v1/namespaces/team/events",
       R"({"apiVersion":"v1","kind":"Event","metadata":{"name":"e1","namespace":"team"},
    "involvedObject":{"kind":"Pod","namespace":"team","name":"waits"},"reason":"FailedScheduling","type":"Warning",
    "message":"no GPU is free","lastTimestamp":"2026-01-01T00:00:00Z"})");
  may({{{""}, {"pods", "events"}, {"get", "list"}, "team"}});
  EXPECT_EQ(explain({"team/waits"}), 1) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("pod team/waits: Pending, no node has been chosen\n  requests nvidia.com/gpu=1\n"));
  EXPECT_THAT(out.str(), HasSubstr("error SchedulerRefuses: default-scheduler finds no node for the pod: 0/1 nodes are "
                                   "available: 1 Insufficient nvidia.com/gpu.\n"));
  EXPECT_THAT(out.str(), HasSubstr("FailedScheduling: no GPU is free\n"));
  EXPECT_THAT(out.str(), HasSubstr("  team/runs: nvidia.com/gpu=1 on gpu-1\n"));
  EXPECT_THAT(out.str(), HasSubstr("incomplete: nodes not checked: nodes cannot be listed by user \"oncall\""));
  EXPECT_THAT(out.str(), Not(HasSubstr("NoGPUNodes")));
  out.str("");
  EXPECT_EQ(explain({"team/waits"}, OutputForm::json), 1);
  EXPECT_EQ(Json::parse(out.str())["beside"][0], "team/runs: nvidia.com/gpu=1 on gpu-1");
  EXPECT_EQ(explain({"gpu-1"}), 2);
  EXPECT_THAT(err.str(),
              HasSubstr("explain: nodes cannot be listed by user \"oncall\". Missing permission: add {apiGroups: "
                        "[\"\"], resources: [nodes], verbs: [list]} to a ClusterRole"));
}

// docs/oncall-rbac.yaml, as RBAC resolves it.
std::vector<RbacRule> documented_rules() {
  const char* root = std::getenv("GSO_SOURCE_DIR");
  std::ifstream file(std::string(root ? root : ".") + "/docs/oncall-rbac.yaml");
  std::stringstream text;
  text << file.rdbuf();
  std::map<std::string, Json> roles;
  std::vector<RbacRule> out;
  const std::string whole = text.str();
  for (std::size_t from = 0; from < whole.size();) {
    const std::size_t to = std::min(whole.find("\n---\n", from), whole.size());
    const auto json = yaml_to_json(whole.substr(from, to - from));
    EXPECT_TRUE(json.has_value());
    const Json object = Json::parse(json.value_or("{}"));
    from = to + 5;
    if (object.value("kind", "") == "ClusterRole") {
      roles[object["metadata"]["name"]] = object["rules"];
      continue;
    }
    for (const Json& rule : roles.at(object["roleRef"]["name"]))
      out.push_back({rule["apiGroups"], rule["resources"], rule["verbs"], object["metadata"].value("namespace", "")});
  }
  return out;
}

// What is granted and was not used. What other systems serve is not here; `get` is kubectl's, `watch` is that of
// `status --watch`; logs, Events and nos's Lease are asked for where there is something to ask about.
std::vector<std::string> unused(const std::vector<RbacRule>& rules, const std::set<std::string>& used) {
  const std::set<std::string> exempt{
      "nvidia.com", "scheduling.run.ai", "kai.scheduler", "node.k8s.io", "apiextensions.k8s.io", "get",
      "watch",      "deployments",       "events",        "leases"};
  std::vector<std::string> out;
  for (const RbacRule& rule : rules) {
    for (const std::string& group : rule.groups) {
      for (const std::string& resource : rule.resources) {
        for (const std::string& verb : rule.verbs) {
          const std::string right = fmt::format("{} {} {}", verb, resource, group);
          const bool elsewhere = exempt.contains(group) || exempt.contains(resource) || exempt.contains(verb);
          if (!elsewhere && !used.contains(right)) out.push_back(right);
        }
      }
    }
  }
  return out;
}

TEST_F(Rights, TheDocumentedRolesAreEnoughForWhatTheyAreFor) {
  post("/apis/gpusharing.dev/v1alpha1/sharingpolicies",
       R"({"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingPolicy","metadata":{"name":"default"},"spec":{}})");
  post("/apis/gpusharing.dev/v1alpha1/sharingrollouts",
       R"({"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingRollout","metadata":{"name":"r"},"spec":{"policy":
         "default","configMap":"gpu-operator/mps-config","key":"any","toRevision":"v1-2","profile":"version: v1\n"}})");
  post("/api/v1/namespaces/team/pods", R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{
         "containers":[{"name":"c","image":"i","resources":{"limits":{"nvidia.com/gpu":"1"}}}]}})");
  may(documented_rules());
  EXPECT_THAT(status(), HasSubstr("gpu-1"));
  // 1: the plugin's pod is missing. 2 would be an incomplete answer.
  EXPECT_EQ(explain({"gpu-1"}), 1);
  EXPECT_EQ(explain({"team/p"}), 0);
  EXPECT_EQ(sim.run(audit_cluster(mine.get(), &sim.clock, AuditOptions(), PlannerSettings(), &out, &err)), 1);
  EXPECT_EQ(sim.run(plan_cluster(mine.get(), &sim.clock, PlanOptions(), &out, &err)), 0);
  using Verb = RolloutOptions::Verb;
  for (const Verb verb : {Verb::status, Verb::history, Verb::diff, Verb::pause, Verb::resume, Verb::abort, Verb::start})
    EXPECT_EQ(rollout(verb), 0) << err.str();
  (void)check();
  const k8s::Result<std::string> bundle = sim.run(support_bundle(mine.get(), &sim.clock, Options()));
  ASSERT_TRUE(bundle.has_value());
  for (const std::string& said : {out.str(), err.str(), unpacked(*bundle)}) {
    EXPECT_THAT(said, Not(HasSubstr("Missing permission")));
    EXPECT_THAT(said, Not(HasSubstr("incomplete: ")));
  }
  EXPECT_THAT(unused(documented_rules(), guard->used), testing::IsEmpty());
}

}  // namespace
}  // namespace gso::rights_test
