// explain POD of a pod that waits for a node: what each node lacks, and which nodes are listed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "reconcilers/explain/pod.h"
#include "tests/reconcilers/explain/explained.h"

namespace gso::explain_pod_nodes_test {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr const char* kEight = R"(nvidia.com/gpu: "8")";

std::string waiting(const std::string& spec) {
  return R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"train","namespace":"team","uid":"u1"},"spec":{)" +
         spec +
         R"("containers":[{"name":"c","image":"i","resources":{"limits":{"nvidia.com/gpu":"1"}}}]},"status":{"phase":"Pending"}})";
}

std::string requires_of_node(const std::string& terms) {
  return R"("affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[)" +
         terms + R"(]}}},)";
}

std::string term(const std::string& key, const std::string& op, const std::string& values) {
  return fmt::format(R"({{"matchExpressions":[{{"key":"{}","operator":"{}","values":[{}]}}]}})", key, op, values);
}

std::string another_node(const std::string& name, const std::string& labels, const std::string& spec = "{}") {
  return fmt::format(R"(---
apiVersion: v1
kind: Node
metadata: {{name: {}, labels: {{nvidia.com/gpu.present: "true", nvidia.com/gpu.count: "2"{}}}}}
spec: {}
status: {{capacity: {{nvidia.com/gpu: "8"}}, allocatable: {{nvidia.com/gpu: "8"}}, conditions: [{{type: Ready, status: "True"}}]}}
)",
                     name, labels, spec);
}

// The usual mistake is one between what people call a GPU and what GFD's label says under sharing.
TEST(ExplainPodNodes, ARequiredAffinityIsNamedWithBothValues) {
  const std::string labels = R"(, nvidia.com/gpu.product: A100-SHARED, nvidia.com/gpu.memory: "40960", zone: a)";
  const struct {
    std::string terms, wanted, label;
  } cases[] = {
      {term("nvidia.com/gpu.product", "In", R"("A100")"),
       "label nvidia.com/gpu.product is A100-SHARED, the pod's node affinity requires A100", "nvidia.com/gpu.product"},
      {term("nvidia.com/gpu.product", "In", R"("A100","H100")"),
       "label nvidia.com/gpu.product is A100-SHARED, the pod's node affinity requires one of A100, H100",
       "nvidia.com/gpu.product"},
      {term("nvidia.com/gpu.memory", "Gt", R"("60000")"),
       "label nvidia.com/gpu.memory is 40960, the pod's node affinity requires more than 60000",
       "nvidia.com/gpu.memory"},
      {term("nvidia.com/gpu.memory", "Lt", R"("30000")"), "requires less than 30000", "nvidia.com/gpu.memory"},
      {term("zone", "NotIn", R"("a")"), "label zone is a, the pod's node affinity requires another one than a", "zone"},
      {term("zone", "DoesNotExist", ""), "label zone is a, the pod's node affinity requires no such label", "zone"},
      {term("zone", "In", R"("b")") + "," + term("zone", "In", R"("c")"),
       "label zone is a, the pod's node affinity requires b (or 1 other term)", "zone"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.wanted);
    const PodExplanation out = Explained(cluster(kSliced, labels, kEight)).pod(waiting(requires_of_node(c.terms)));
    ASSERT_FALSE(out.causes.empty());
    EXPECT_EQ(out.causes[0].reason.code, "NotSelected");
    EXPECT_THAT(out.causes[0].reason.message, HasSubstr(c.wanted));
    EXPECT_EQ(out.causes[0].cure.command.text(), "kubectl get nodes --label-columns " + c.label);
    if (c.label == "nvidia.com/gpu.product") {
      EXPECT_THAT(out.causes[0].cure.options, Contains(HasSubstr("-SHARED")));
    }
  }
}

TEST(ExplainPodNodes, ANodeThatDiffersByTheSuffixOfSharingAloneComesFirst) {
  const std::string nodes = cluster(kSliced, ", nvidia.com/gpu.product: T4-SHARED", kEight) +
                            another_node("x-1", ", nvidia.com/gpu.product: A100-SHARED");
  for (const std::string& spec : {requires_of_node(term("nvidia.com/gpu.product", "In", R"("A100")")),
                                  std::string(R"("nodeSelector":{"nvidia.com/gpu.product":"A100"},)")}) {
    const PodExplanation out = Explained(nodes).pod(waiting(spec));
    ASSERT_FALSE(out.causes.empty());
    EXPECT_THAT(out.causes[0].reason.message, HasSubstr("label nvidia.com/gpu.product is A100-SHARED"));
    ASSERT_EQ(out.nodes.size(), 2U);
    EXPECT_EQ(out.nodes[0].node, "x-1");
  }
}

// The cause is about the one node that the pod selects, and 30 others come before it by name.
TEST(ExplainPodNodes, EveryNodeIsListedAndThoseOfTheCauseComeFirst) {
  std::string nodes = cluster(kSliced, "", kEight);
  for (int i = 0; i < 30; ++i) nodes += another_node(fmt::format("a-{:02}", i), "");
  nodes += another_node("z-1", ", pool: train", "{unschedulable: true}");
  const PodExplanation out = Explained(nodes).pod(waiting(R"("nodeSelector":{"pool":"train"},)"));
  ASSERT_FALSE(out.causes.empty());
  EXPECT_EQ(out.causes[0].reason.code, "Cordoned");
  ASSERT_EQ(out.nodes.size(), 32U);
  EXPECT_EQ(out.nodes[0].node, "z-1");
  EXPECT_EQ(out.nodes[0].code, "Cordoned");
  EXPECT_EQ(std::ranges::count(out.nodes, "NotSelected", &PodExplanation::NodeVerdict::code), 31);
}

// Under migStrategy single they are nvidia.com/gpu.
TEST(ExplainPodNodes, MigSlicesThatHaveTheNameOfGpusAreNamedWithTheirNode) {
  const std::string nodes = cluster(kSliced, "", kEight) +
                            another_node("mig-1", ", nvidia.com/gpu.product: A100-SXM4-40GB-MIG-1g.5gb-SHARED");
  const PodExplanation out = Explained(nodes).pod(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"train","namespace":"team","uid":"u1"},"spec":{
          "containers":[{"name":"c","image":"i","resources":{"limits":{"nvidia.com/mig-1g.5gb":"1"}}}]},
          "status":{"phase":"Pending"}})");
  ASSERT_FALSE(out.causes.empty());
  EXPECT_EQ(out.causes[0].reason.code, "NotServed");
  EXPECT_THAT(out.causes[0].reason.message,
              HasSubstr("no node that the pod selects offers nvidia.com/mig-1g.5gb: mig-1 offers 8 "
                        "nvidia.com/gpu, which are MIG slices of that kind"));
  EXPECT_EQ(out.causes[0].cure.command.text(), "kubectl describe node mig-1");
  EXPECT_THAT(out.causes[0].cure.options, Contains(HasSubstr("the pod's owner requests nvidia.com/gpu instead")));
}

TEST(ExplainPodNodes, ANodeWithoutGpusThatThePodSelectsIsListed) {
  const std::string nodes = cluster(kSliced, "", kEight) + R"(---
apiVersion: v1
kind: Node
metadata: {name: cpu, labels: {zone: b}}
status: {conditions: [{type: Ready, status: "True"}]}
)";
  const PodExplanation out = Explained(nodes).pod(waiting(R"("nodeSelector":{"zone":"b"},)"));
  ASSERT_EQ(out.nodes.size(), 2U);
  EXPECT_EQ(out.nodes[0].node, "cpu");
  EXPECT_EQ(out.nodes[0].code, "NoGPUsThere");
}

}  // namespace
}  // namespace gso::explain_pod_nodes_test
