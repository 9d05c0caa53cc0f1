// How what is to be explained is named and offered to a shell, and how explanations fit a terminal; tests/transcripts
// has the texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "controller/cli/cli.h"
#include "controller/commands/commands.h"
#include "controller/reading/operator_lease.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/model/resources.h"
#include "tests/controller/our_cluster.h"

namespace gso::look_commands_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

TEST(ExplainTarget, TargetsAreNamedInFewWays) {
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

TEST_F(OurClusterWithoutCrds, AShellIsOfferedTheNamesThatThereAre) {
  post("/api/v1/namespaces", R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team"}})");
  post(
      "/api/v1/namespaces/team/pods",
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"first"},"spec":{"containers":[{"name":"c","image":"i"}]}})");
  const std::vector<NameQuestion> questions{{resources::sharing_rollouts, "", "", ""},  // Not served.
                                            {resources::nodes, "", "", ""},
                                            {resources::pods, "", "team/", ""}};
  EXPECT_THAT(sim.run(list_names(&client, &sim.clock, questions, "team")), testing::ElementsAre("gpu-1", "team/first"));
  sim::FaultRule rule;
  rule.fault = sim::Fault::forbidden;
  rule.resource = "nodes";
  transport.faults().add(rule);
  EXPECT_THAT(sim.run(list_names(&client, &sim.clock, questions, "team")), testing::ElementsAre("team/first"));
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
