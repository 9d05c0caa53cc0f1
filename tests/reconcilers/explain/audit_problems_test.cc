// How an audit merges findings into problems, one for each cause, and counts the GPUs that each of them costs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "reconcilers/explain/audit.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/reasons/names.h"
#include "tests/reconcilers/explain/explained.h"

namespace gso::audit_problems_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;

GpusByNode two_lost_by(Explained& explained) {
  explained.index.refresh(explained.world, explained.settings);
  NodeGpus gpus;
  gpus.lost = 2;
  gpus.node = explained.world.nodes.find("gpu-1");
  gpus.assessment = explained.index.assessment("gpu-1");
  return {{"gpu-1", gpus}};
}

// The node's two GPUs are lost to the node, to its ConfigMap and to its DaemonSet: a problem of all three costs two.
TEST(AuditProblems, AConfigMapAndItsNodesCostTheGpusOfANodeOnce) {
  Explained explained(cluster(kSliced, "", R"(nvidia.com/gpu: "0")"));
  const GpusByNode gpus = two_lost_by(explained);
  const ObjectRef config_map{"v1", "ConfigMap", "gpu-operator", "plugin-config", ""};
  const ObjectRef plugin{"apps/v1", "DaemonSet", "gpu-operator", "plugin", ""};
  const auto found = [](const ObjectRef& object) {
    return Finding{Severity::error, object, {"Reason", "what happened"}};
  };
  EXPECT_THAT(
      merge_findings(explained.index.impl(), {found(config_map), found(node_ref("gpu-1")), found(plugin)}, gpus),
      ElementsAre(Field(&AuditProblem::gpus_lost, 2)));
  for (const ObjectRef& alone : {config_map, node_ref("gpu-1"), plugin}) {
    EXPECT_THAT(merge_findings(explained.index.impl(), {found(alone)}, gpus),
                ElementsAre(Field(&AuditProblem::gpus_lost, 2)))
        << alone.kind;
  }
}

// The other node still serves its GPUs.
TEST(AuditProblems, AProblemNamesTheNodesThatHaveLostTheirGpus) {
  Explained explained(cluster(kSliced, "", R"(nvidia.com/gpu: "0")"));
  GpusByNode gpus = two_lost_by(explained);
  const std::vector<Finding> found{{Severity::error, node_ref("gpu-1"), {"Reason", "what happened"}},
                                   {Severity::error, node_ref("gpu-2"), {"Reason", "what happened"}}};
  EXPECT_THAT(merge_findings(explained.index.impl(), found, gpus),
              ElementsAre(AllOf(Field(&AuditProblem::gpus_lost, 2), Field(&AuditProblem::lost_on, ElementsAre("gpu-1")),
                                Field(&AuditProblem::objects, testing::SizeIs(2)))));
}

// Pods that could not be read are not missing.
TEST(AuditProblems, NoPodIsMissedWhereNoneCouldBeRead) {
  Explained explained(cluster(kSliced, "", R"(nvidia.com/gpu: "8")"));
  explained.world.operand_pods.erase({"gpu-operator", "plugin-1"});
  explained.index.note_everything_changed();
  explained.index.refresh(explained.world, explained.settings);
  const auto problems = [&] {
    return operand_problems(explained.world, explained.index.impl(), *explained.world.nodes.find("gpu-1"),
                            *explained.index.assessment("gpu-1"));
  };
  EXPECT_THAT(problems(), ElementsAre("no pod of DaemonSet gpu-operator/plugin runs on node gpu-1"));
  explained.world.unsynced_namespaces.insert("gpu-operator");
  EXPECT_THAT(problems(), ElementsAre());
}

// A key that no node runs costs no GPU, whatever the nodes of its ConfigMap have lost.
TEST(AuditProblems, AFindingAboutOneKeyCostsTheGpusOfTheNodesThatRunIt) {
  Explained explained(cluster(kSliced, "", R"(nvidia.com/gpu: "0")"));
  const GpusByNode gpus = two_lost_by(explained);
  const auto cost = [&](const std::string& key) {
    const ObjectRef config_map{"v1", "ConfigMap", "gpu-operator", "plugin-config", ""};
    const Finding finding{Severity::warning, config_map, {"ConfigInvalid", "why"}, key};
    return merge_findings(explained.index.impl(), {finding}, gpus).front().gpus_lost;
  };
  EXPECT_EQ(cost("any"), 2);
  EXPECT_EQ(cost("other"), 0);
  EXPECT_EQ(cost(""), 2) << "it is about all keys";
}

// Of two findings about a node its GPUs and pods are those of the most severe one, and then of the outage.
TEST(AuditProblems, TheGpusAndPodsOfANodeAreCountedOnce) {
  Explained explained(cluster(kSliced, "", R"(nvidia.com/gpu: "0")"));
  GpusByNode gpus = two_lost_by(explained);
  const auto found = [](Severity severity, const char* reason) {
    return Finding{severity, node_ref("gpu-1"), {reason, reason}};
  };
  gpus.at("gpu-1").pods = {"pod"};
  const auto problems =
      merge_findings(explained.index.impl(),
                     {found(Severity::error, "NoneAllocatable"), found(Severity::warning, "MIGEnabled")}, gpus);
  ASSERT_EQ(problems.size(), 2U);
  EXPECT_EQ(problems[0].gpus_lost, 2);
  EXPECT_THAT(problems[0].pods, ElementsAre("pod"));
  EXPECT_EQ(problems[1].gpus_lost, 0);
  EXPECT_THAT(problems[1].pods, ElementsAre());
  const auto alike = merge_findings(
      explained.index.impl(), {found(Severity::warning, "MIGEnabled"), found(Severity::warning, "NodeNotReady")}, gpus);
  EXPECT_EQ(alike[0].reason.code, "NodeNotReady");
  EXPECT_EQ(alike[0].gpus_lost, 2);
  EXPECT_EQ(alike[1].gpus_lost, 0);
}

// A node that is blocked because of MIG, and whose pods have restarted into MPS all the same.
TEST(RootCauses, MpsOnMigIsTheOutageOfANodeWhosePodsDoNotRun) {
  for (const bool runs : {false, true}) {
    Explained explained(cluster(kSliced, "", R"(nvidia.com/gpu: "0")"));
    if (!runs) explained.world.operand_pods.erase({"gpu-operator", "plugin-1"});
    explained.index.note_everything_changed();
    explained.index.refresh(explained.world, explained.settings);
    const auto found = [](Severity severity, std::string_view reason) {
      return Finding{severity, node_ref("gpu-1"), {reason, "why"}};
    };
    std::vector<Finding> findings{found(Severity::error, kNoneAllocatable), found(Severity::warning, kMigEnabled)};
    keep_root_causes(explained.world, explained.index, true, findings);
    ASSERT_EQ(findings.size(), runs ? 2U : 1U);
    EXPECT_EQ(findings.back().why.code, kMigEnabled);
    EXPECT_EQ(findings.back().severity, runs ? Severity::warning : Severity::error);
    EXPECT_EQ(findings.back().why.message, runs ? "why" : "why; none of the node's GPUs is allocatable");
  }
}

// Whatever the messages say: of nodes with similar names, and of an error that quotes another message.
TEST(RootCauses, ARolloutThatWaitsForOneHeldNodeIsSaidByTheFindingAboutThatNode) {
  const auto on = [](const char* node, std::string_view reason) {
    return Finding{Severity::warning, node_ref(node), {reason, "): gpu-1: held"}};
  };
  std::vector<Finding> findings{on("gpu-10", kHeldMidChange), on("gpu-1", kCordoned), on("gpu-1", kHeldMidChange)};
  EXPECT_TRUE(say_who_waits("gpu-1", "the rollout waits", findings));
  EXPECT_FALSE(say_who_waits("gpu-2", "the rollout waits", findings)) << "no finding about its node says who waits";
  EXPECT_FALSE(say_who_waits("", "the rollout waits", findings));
  EXPECT_EQ(findings[0].why.message, "): gpu-1: held");
  EXPECT_EQ(findings[1].why.message, "): gpu-1: held");
  EXPECT_EQ(findings[2].why.message, "): gpu-1: held. Until then the rollout waits");
}

}  // namespace
}  // namespace gso::audit_problems_test
