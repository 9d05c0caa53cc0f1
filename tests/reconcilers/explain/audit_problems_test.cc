// How an audit merges findings into problems, and counts the GPUs that each of them costs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "reconcilers/explain/audit.h"
#include "reconcilers/model/object_refs.h"
#include "tests/reconcilers/explain/explained.h"

namespace gso::audit_problems_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

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

// No new pod gets the GPUs of a cordoned node: that is the cordon's loss, and not that of the node's ConfigMap.
TEST(AuditProblems, TheGpusOfACordonedNodeAreUnusableBecauseOfTheCordon) {
  Explained explained(cluster(kSliced, "", R"(nvidia.com/gpu: "8")", "{unschedulable: true}"));
  const Audit out = audit(explained.snapshot(), explained.index);
  EXPECT_EQ(out.gpus.total, 2);
  EXPECT_EQ(out.gpus.lost, 2);
  EXPECT_THAT(out.problems,
              Contains(AllOf(Field(&AuditProblem::gpus_lost, 2), Field(&AuditProblem::severity, Severity::warning),
                             Field(&AuditProblem::reason,
                                   AllOf(Field(&Reason::code, "Cordoned"),
                                         Field(&Reason::message, AllOf(HasSubstr("cordoned, and not by the operator"),
                                                                       HasSubstr("`kubectl uncordon gpu-1`"))))))));
  EXPECT_THAT(explained.node("gpu-1").notes,
              Contains("Cordoned by someone else, who must uncordon it; holds 1 slot of the budget (maxUnavailable)"));
  // A warning, so that no text says that nothing is to be done.
  EXPECT_THAT(
      explained.node("gpu-1").findings,
      Contains(AllOf(
          Field(&Finding::why, Field(&Reason::code, "Cordoned")), Field(&Finding::severity, Severity::warning),
          Field(&Finding::why, Field(&Reason::message, HasSubstr("no new pod gets its GPUs. Whoever cordoned it can "
                                                                 "return it to service: `kubectl uncordon gpu-1`"))))));
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

}  // namespace
}  // namespace gso::audit_problems_test
