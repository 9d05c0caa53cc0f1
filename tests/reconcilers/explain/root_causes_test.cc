// One cause is one problem of the audit, which names its consequences.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/explain/audit.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/reasons/names.h"
#include "tests/reconcilers/explain/explained.h"

namespace gso::root_causes_test {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

std::vector<AuditProblem> problems(const std::string& manifests) {
  Explained explained(manifests);
  std::vector<AuditProblem> out = audit(explained.snapshot(), explained.index).problems;
  std::erase_if(out, [](const AuditProblem& problem) { return problem.severity == Severity::info; });
  return out;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(RootCauses, OfANodeThatIsNotReadyItsDriftIsAConsequence) {
  const auto found = problems(replaced(cluster(kSliced, "", R"(nvidia.com/gpu: "2")"), R"(type: Ready, status: "True")",
                                       R"(type: Ready, status: "Unknown")"));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].reason.code, "NodeNotReady");
  EXPECT_THAT(found[0].reason.message, HasSubstr("what its profile should show is not there or not known"));
  EXPECT_EQ(found[0].gpus_lost, 2);
}

// The plugin waits forever for an MPS daemon that no DaemonSet runs: that is why no GPU is allocatable.
TEST(RootCauses, WhatKeepsThePluginFromServingIsTheProblemAndNotThatItServesNothing) {
  constexpr const char* kMps = R"(    sharing:
      mps:
        resources:
        - {name: nvidia.com/gpu, replicas: 4})";
  const auto found = problems(cluster(kMps, "", R"(nvidia.com/gpu: "0")"));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].reason.code, "MPSDaemonMissing");
  EXPECT_EQ(found[0].severity, Severity::error);
  EXPECT_THAT(found[0].reason.message, HasSubstr("the node has 0 GPUs"));
  EXPECT_EQ(found[0].gpus_lost, 2);
}

TEST(RootCauses, AConfigMapThatDoesNotExistIsReportedOnceForThePodsThatMountItAndTheGpusThatItCosts) {
  const auto found = problems(replaced(cluster(kSliced, "", R"(nvidia.com/gpu: "0")"),
                                       "metadata: {name: plugin-config, ", "metadata: {name: another, "));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].reason.code, "ConfigMapMissing");
  EXPECT_EQ(found[0].severity, Severity::error);
  std::vector<std::string> kinds;
  for (const ObjectRef& object : found[0].objects) kinds.push_back(object.kind);
  EXPECT_THAT(kinds, ElementsAre("ConfigMap", "DaemonSet"));
  EXPECT_THAT(found[0].cure.command.text(),
              HasSubstr("kubectl create configmap plugin-config --namespace gpu-operator"));
  EXPECT_EQ(found[0].gpus_lost, 2);
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

TEST(RootCauses, TheErrorOfAnInvalidDefaultKeyIsPrintedOnce) {
  constexpr const char* kInvalidDefault =
      R"(    sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 1}]}}
  other: |
    version: v1
    sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}})";
  const auto found =
      problems(replaced(cluster(kInvalidDefault, ", nvidia.com/device-plugin.config: other", R"(nvidia.com/gpu: "8")"),
                        "v0.17.1", "v0.18.2"));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].reason.code, "ConfigInvalid");
  EXPECT_THAT(found[0].reason.message, HasSubstr("replicas is 1"));
  EXPECT_EQ(found[1].reason.code, "DefaultInvalid");
  EXPECT_THAT(found[1].reason.message, EndsWith(" even on a labelled node; ConfigInvalid names the error"));
}

// From v0.18.2 on the nodes with a label need the default key as well: one sentence for all of them.
TEST(RootCauses, ADefaultKeyThatDoesNotExistIsOneProblemOfNodesWithAndWithoutALabel) {
  std::set<std::string> messages;
  for (const char* label : {"", ", nvidia.com/device-plugin.config: any"}) {
    std::string manifests = replaced(cluster(kSliced, label, R"(nvidia.com/gpu: "8")"), "v0.17.1", "v0.20.0");
    manifests = replaced(manifests, "value: any}", "value: ayn}");
    for (const AuditProblem& problem : problems(manifests))
      if (problem.reason.code == "DefaultKeyNotFound") messages.insert(problem.reason.message);
  }
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_THAT(*messages.begin(), HasSubstr("needs a default key even on a labelled node"));
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

// `kubectl delete` of a policy with an inline profile leaves the generated label behind, with or without its key.
TEST(RootCauses, ALabelThatAGonePolicyLeftBehindIsOneProblem) {
  const std::string kept = "\n  gso-team-6091b26975: |\n    version: v1\n    sharing:\n      ";
  const std::string entry = ": {resources: [{name: nvidia.com/gpu, replicas: 8}]}";
  const auto found = [&](const std::string& key) {
    const std::string profiles = kSliced + key;
    return problems(replaced(cluster(profiles, ", nvidia.com/device-plugin.config: gso-team-6091b26975",
                                     key.empty() ? R"(nvidia.com/gpu: "8")" : R"(nvidia.com/gpu: "16")"),
                             "v0.17.1", "v0.19.0"));
  };
  const auto gone = found("");
  ASSERT_EQ(gone.size(), 1U);
  EXPECT_EQ(gone[0].reason.code, "KeyNotFound");
  EXPECT_THAT(gone[0].reason.message,
              HasSubstr("Remove the label nvidia.com/device-plugin.config: the operator generated"));
  EXPECT_EQ(found(kept + "timeSlicing" + entry).size(), 0U);
  std::vector<std::string> reasons;
  for (const AuditProblem& problem : found(kept + "mps" + entry)) {
    reasons.push_back(problem.reason.code);
    if (problem.reason.code != kMpsByLabelUnsupported) continue;
    EXPECT_THAT(problem.reason.message, HasSubstr("is left over"));
    EXPECT_THAT(problem.reason.message, EndsWith("with which its pods cannot start again. Remove the label"));
  }
  // The fixture has no MPS daemon, which is another problem.
  EXPECT_THAT(reasons, UnorderedElementsAre("MPSByLabelUnsupported", "MPSDaemonMissing"));
}

TEST(RootCauses, AnOutageThatNothingExplainsIsAProblemOfItsOwn) {
  const auto found = problems(cluster(kSliced, "", R"(nvidia.com/gpu: "0")"));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].reason.code, "NoneAllocatable");
}

}  // namespace
}  // namespace gso::root_causes_test
