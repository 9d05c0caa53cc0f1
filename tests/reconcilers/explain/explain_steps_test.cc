// What is reported about a node at each step of its change, and the command to continue with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "reconcilers/explain/audit.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/explain/reading_pass.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/reasons/names.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test::explain_steps_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

FleetSpec one_node(const std::string& profile) {
  FleetSpec spec;
  spec.profiles = {{"any", profile}};
  spec.nodes = alike_nodes(1, "NVIDIA-A100-SXM4-40GB", "a");
  return spec;
}

// As a command shows it, which has read the cluster once.
ShownState shown_to_people(FleetModel& fleet, const std::string& node = "a01") {
  fleet.index.refresh(fleet.world, fleet.settings);
  ReadingPass pass(fleet.world, fleet.index, fleet.settings, fleet.now);
  return shown_state(pass, fleet.node(node));
}

// The steps of a01 while it is in a change, each once.
std::vector<std::string> steps_of(FleetModel& fleet, int ticks) {
  std::vector<std::string> out;
  for (int i = 0; i < ticks; ++i) {
    (void)fleet.tick();
    fleet.index.refresh(fleet.world, fleet.settings);
    const NodeAssessment* a = fleet.index.assessment("a01");
    if (!a->in_change()) continue;
    const std::string step = shown_to_people(fleet).message;
    if (out.empty() || out.back() != step) out.push_back(step);
  }
  return out;
}

TEST(ChangeStep, ShowsWhatIsReplacedNextAndWhatIsVerified) {
  FleetModel fleet(one_node("mps-4"));
  fleet.settings.settle = Duration::zero();
  fleet.settle();
  fleet.edit("any", "mps-8");
  EXPECT_THAT(steps_of(fleet, 20), ElementsAre(HasSubstr("is being drained; then mps mps-a01"),
                                               HasSubstr("is not Ready; then plugin plugin-a01-6 is replaced"),
                                               HasSubstr("plugin plugin-a01-6 is replaced next"),
                                               AllOf(HasSubstr("pod plugin-a01-"), HasSubstr("is not Ready")),
                                               "new profile is live; confirming"));
}

TEST(ChangeStep, NamesTheContainerThatDoesNotComeUpAndANodeThatIsNotReady) {
  FleetModel fleet(one_node("ts-4"));
  fleet.settings.settle = Duration::zero();
  fleet.settle();
  fleet.crash_pods("a01", true);
  fleet.edit("any", "ts-8");
  EXPECT_THAT(steps_of(fleet, 8).back(), HasSubstr("CrashLoopBackOff"));
  fleet.set_ready("a01", false);
  fleet.index.refresh(fleet.world, fleet.settings);
  ReadingPass pass(fleet.world, fleet.index, fleet.settings, fleet.now);
  const std::vector<NodeStep> steps = steps_to(pass, "default", "gpu-operator/mps-config/any", 9);
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].node, "a01");
  EXPECT_FALSE(steps[0].ready);
  EXPECT_THAT(steps[0].step, HasSubstr("the node is NotReady during its change"));
  EXPECT_TRUE(steps_to(pass, "default", "gpu-operator/mps-config/other", 9).empty());
  EXPECT_EQ(steps_to(pass, "default", "", 9).size(), 1U) << "of all keys";
  fleet.annotate("a01", kHoldAnnotation, "true");
  fleet.index.refresh(fleet.world, fleet.settings);
  ReadingPass held(fleet.world, fleet.index, fleet.settings, fleet.now);
  EXPECT_EQ(change_step(held, fleet.node("a01"), *fleet.index.assessment("a01")),
            "annotation gpusharing.dev/hold is set: the operator waits until this ends");
}

// The operator counts from when the first pods went, and a command from the newest pod: it names a time at which the
// operator has given up.
TEST(ChangeStep, ANodeThatDoesNotShowItsProfileForLongSaysWhenItsChangeFails) {
  FleetModel fleet(one_node("ts-4"));
  fleet.settings.settle = Duration::zero();
  fleet.settle();
  fleet.crash_pods("a01", true);
  fleet.edit("any", "ts-8");
  EXPECT_THAT(steps_of(fleet, 20).back(), Not(HasSubstr("the change fails at"))) << "it takes no longer than usual";
  for (int i = 0; i < 150; ++i) (void)fleet.tick();
  const std::string said = shown_to_people(fleet).message;
  const std::string before = "; if this lasts, the change fails at ";
  ASSERT_THAT(said, AllOf(HasSubstr("CrashLoopBackOff"), HasSubstr(before),
                          testing::EndsWith(" at the latest (verifyTimeout 10m0s)")));
  const std::string rest = said.substr(said.find(before) + before.size());
  const auto end = k8s::parse_rfc3339(rest.substr(0, rest.find(' ')));
  ASSERT_TRUE(end.has_value()) << rest;
  EXPECT_GT(*end, fleet.now + std::chrono::minutes(5));
  for (int i = 0; i < 700 && fleet.now < *end; ++i) (void)fleet.tick();
  EXPECT_EQ(shown_to_people(fleet).state, "Failed");
}

// The pod that the change waited for is Ready by now, and the change has not reached the plugin: the log of the former
// plugin would show nothing.
TEST(ExplainNode, AFailedNodeWhosePodsAreReadyByNowIsRetried) {
  FleetModel fleet(one_node("mps-4"));
  fleet.settings.settle = Duration::zero();
  fleet.settings.rollout.verify_timeout = std::chrono::minutes(1);
  fleet.settle();
  fleet.ail("a01", "mps", "no config", 1000);
  fleet.edit("any", "mps-8");
  for (int i = 0; i < 600 && shown_to_people(fleet).state != "Failed"; ++i) (void)fleet.tick();
  ASSERT_EQ(shown_to_people(fleet).state, "Failed") << shown_to_people(fleet).message;
  fleet.ail("a01", "mps", "", 0);
  fleet.delete_pod_of("a01", "mps");
  fleet.advance(std::chrono::seconds(30));
  ASSERT_EQ(shown_to_people(fleet).state, "Failed") << shown_to_people(fleet).message;
  fleet.index.refresh(fleet.world, fleet.settings);
  const Snapshot snapshot{fleet.world, fleet.now, fleet.timers, fleet.consumers, fleet.settings};
  const NodeExplanation out = explain_node(snapshot, fleet.index, {}, "a01").value_or(NodeExplanation());
  EXPECT_THAT(out.next.text(),
              testing::StartsWith("gpu-sharing-operator rollout start default  # the pods of the node are "
                                  "Ready by now: goes on to replace plugin plugin-a01"));
  EXPECT_THAT(out.next.text(), Not(HasSubstr("kubectl logs")));
}

constexpr const char* kPaused =
    "apiVersion: gpusharing.dev/v1alpha1\nkind: SharingPolicy\nmetadata: {name: default}\n"
    "spec: {rollout: {paused: true}}\n";

// a01 waits for a pod before it changes to eight MPS clients.
void drain(FleetModel& fleet, const testing::Matcher<std::string>& says = HasSubstr("waits for jobs/job")) {
  fleet.settings.settle = Duration::zero();
  fleet.settle();
  fleet.use("a01", "job", "nvidia.com/gpu", 1);
  fleet.edit("any", "mps-8");
  for (int i = 0; i < 30; ++i) (void)fleet.tick();
  ASSERT_EQ(shown_to_people(fleet).state, "Draining");
  ASSERT_THAT(shown_to_people(fleet).message, says);
}

NodeExplanation explained(FleetModel& fleet) {
  fleet.index.refresh(fleet.world, fleet.settings);
  const Timers timers;
  const Snapshot snapshot{fleet.world, fleet.now, timers, fleet.consumers, fleet.settings};
  return explain_node(snapshot, fleet.index, {}, "a01").value_or(NodeExplanation());
}

constexpr const char* kEvicting =
    "apiVersion: gpusharing.dev/v1alpha1\nkind: SharingPolicy\nmetadata: {name: default}\n"
    "spec: {rollout: {workloads: Evict}}\n";

// The record has the text of the moment in which the operator first saw the node.
TEST(ShownRevision, ANodeThatServesGpusHasLoadedSomeValidText) {
  Node node;
  NodeAssessment assessment;
  assessment.loaded.revision = k8s::Interned(kInvalidRevision);
  EXPECT_EQ(shown_loaded_revision(node, assessment), "(invalid)");
  node.allocatable[k8s::Interned("nvidia.com/gpu")] = 4;
  EXPECT_EQ(shown_loaded_revision(node, assessment), "(unknown)");
}

// A node whose plugin was restarted by somebody has read the edit outside a change: it is in progress, and says so.
TEST(ExplainNode, ANodeThatLoadsATextByItselfSaysWhatItDoesNotShowYet) {
  FleetModel fleet(one_node("ts-4"));
  fleet.settle();
  fleet.stick_labels("a01", true);
  fleet.edit("any", "ts-8");
  for (const char* component : {"plugin", "gfd"}) fleet.delete_pod_of("a01", component);
  for (int i = 0; i < 20 && explained(fleet).shown.state != "Verifying"; ++i) (void)fleet.tick();
  const NodeExplanation out = explained(fleet);
  ASSERT_EQ(out.shown.state, "Verifying");
  EXPECT_THAT(out.shown.message,
              HasSubstr("verifying what the node loaded by itself: label nvidia.com/gpu.replicas is 4, expected 8"));
  ReadingPass pass(fleet.world, fleet.index, fleet.settings, fleet.now);
  const std::vector<NodeStep> steps = steps_to(pass, "default", "gpu-operator/mps-config/any", 9);
  ASSERT_EQ(steps.size(), 1U) << "the status of the rollout counts it as in progress";
  EXPECT_EQ(steps[0].step, out.shown.message);
}

TEST(PodChoices, UnderEvictTheyAreAboutWhatRefusesTheEviction) {
  FleetModel fleet(one_node("mps-4"));
  fleet.policy(kEvicting);
  fleet.protect("job", "the budget allows 0 disruptions");
  drain(fleet, HasSubstr("a PodDisruptionBudget prevents the eviction of jobs/job"));
  EXPECT_THAT(explained(fleet).options, ElementsAre(HasSubstr("nobody acts"), HasSubstr("PodDisruptionBudget"),
                                                    HasSubstr("workloads: Interrupt")));
}

// The command has listed the pods itself. How the server has answered evictions, only the operator knows.
TEST(PodChoices, ABudgetThatRefusesIsNamedThoughTheListingDoesNotShowIt) {
  FleetModel fleet(one_node("mps-4"));
  fleet.policy(kEvicting);
  fleet.protect("job", "The disruption budget web needs 2 healthy pods and has 2 currently");
  drain(fleet, HasSubstr("a PodDisruptionBudget prevents the eviction of jobs/job"));
  for (auto& [node, listing] : fleet.consumers) listing.refused.clear();
  const NodeExplanation said = explained(fleet);
  EXPECT_EQ(said.next.text(), "kubectl get poddisruptionbudgets --all-namespaces --field-selector metadata.name=web");
  EXPECT_THAT(said.options,
              ElementsAre(HasSubstr("nobody acts"), HasSubstr("whoever owns PodDisruptionBudget web changes it"),
                          HasSubstr("workloads: Interrupt")));
}

// The same.
TEST(AuditOfADrain, WarnsOfAnEvictionThatABudgetRefuses) {
  FleetModel fleet(one_node("mps-4"));
  fleet.policy(kEvicting);
  fleet.protect("job", "the budget allows 0 disruptions");
  drain(fleet, HasSubstr("a PodDisruptionBudget prevents the eviction of jobs/job"));
  const auto warned = [&] {
    std::map<std::string, NodeConsumers> listed = fleet.consumers;
    for (auto& [node, listing] : listed) listing.refused.clear();
    const Timers timers;
    FleetIndex index;
    const Audit found = audit(Snapshot{fleet.world, fleet.now, timers, listed, fleet.settings}, index);
    return std::ranges::any_of(found.findings, [](const Finding& finding) {
      return finding.severity == Severity::warning && finding.why.code == kPdbRefuses && finding.object.name == "a01" &&
             finding.why.message.contains("the budget allows 0 disruptions");
    });
  };
  EXPECT_TRUE(warned());
  fleet.protect("job", "");
  for (int i = 0; i < 60; ++i) (void)fleet.tick();
  EXPECT_FALSE(warned()) << "the pod is gone, and the node has changed";
}

TEST(ChangeStep, UnderTheOperatorsOwnObserveTheNodeIsNotSaidToLeaveItsChange) {
  FleetModel fleet(one_node("mps-4"));
  drain(fleet);
  fleet.settings.rollouts = PolicyMode::observe;
  EXPECT_THAT(shown_to_people(fleet).message, AllOf(HasSubstr("max-mode Observe"), HasSubstr("stays cordoned")));
  const Audit found = audit({fleet.world, fleet.now, fleet.timers, fleet.consumers, fleet.settings}, fleet.index, true);
  EXPECT_TRUE(std::ranges::any_of(found.problems, [](const AuditProblem& problem) {
    return problem.reason.code == "LeftMidChange" && problem.severity == Severity::warning && problem.gpus_lost == 2;
  }));
  (void)fleet.tick();
  EXPECT_EQ(shown_to_people(fleet).state, "Draining");
}

// The status still names the pods that the node waited for before the pause.
TEST(ChangeStep, AStopThatIsNewerThanTheStatusIsNamedBeforeThePodsOfTheStatus) {
  FleetModel fleet(one_node("ts-4"));
  fleet.settle();
  fleet.edit("any", "ts-8");
  (void)fleet.tick();
  SharingRollout rollout;
  rollout.meta.name = "r";
  rollout.phase = "Progressing";
  rollout.status_json =
      R"({"nodes":[{"name":"a01","state":"Waiting","reason":"WaitingForWorkloads","message":"waits for team/train"}]})";
  fleet.world.rollouts.apply(rollout);
  ASSERT_EQ(shown_to_people(fleet).message, "waits for team/train");
  fleet.policy(kPaused);
  EXPECT_EQ(shown_to_people(fleet).message, "Paused: spec.rollout.paused of the policy is set");
}

// Two groups in one rollout, each behind its own canary: a node names what its own group waits for.
TEST(Waits, ANodeIsShownWhatItsOwnGroupWaitsFor) {
  FleetSpec spec;
  spec.profiles = {{"any", "ts-4"}};
  spec.nodes = alike_nodes(2, "NVIDIA-A100-SXM4-40GB", "a");
  for (const NodeSpec& node : alike_nodes(2, "Tesla-T4", "t")) spec.nodes.push_back(node);
  FleetModel fleet(spec);
  fleet.settings.settle = Duration::zero();
  fleet.settings.cluster_max_unavailable = {100, true};
  fleet.policy(
      "apiVersion: gpusharing.dev/v1alpha1\nkind: SharingPolicy\nmetadata: {name: default}\n"
      "spec: {rollout: {maxUnavailable: 100%, maxUnavailablePerGroup: 100%, canary: {soak: 1h}}}\n");
  fleet.settle();
  fleet.crash_pods("a01", true);
  fleet.crash_pods("a02", true);
  fleet.edit("any", "ts-8");
  const auto waits = [&](const std::string& node) { return shown_to_people(fleet, node).message; };
  for (int i = 0; i < 60 && waits("t02").find("soaks") == std::string::npos; ++i) (void)fleet.tick();
  ASSERT_EQ(shown_to_people(fleet, "a02").state, "Pending");
  ASSERT_EQ(shown_to_people(fleet, "t02").state, "Pending");
  EXPECT_EQ(waits("a02"), "waits for the canary a01");
  EXPECT_THAT(waits("t02"), testing::StartsWith("the canary t01 is verified and soaks for 1h0m0s: the next nodes "));
  EXPECT_THAT(waits("t02"), Not(HasSubstr("a01")));
  // The time is that of the record, which the next pass writes, however often it is asked for.
  (void)fleet.tick();
  const std::string before = waits("t02");
  fleet.now += std::chrono::minutes(10);
  EXPECT_EQ(waits("t02"), before);
}

TEST(Waits, ANodeInTheSettleWindowIsShownWhenNodesStart) {
  FleetModel fleet(one_node("ts-4"));
  fleet.settings.settle = std::chrono::seconds(10);
  fleet.settle();
  fleet.edit("any", "ts-8");
  const std::string start = k8s::format_time(fleet.now + std::chrono::seconds(10));
  EXPECT_EQ(
      shown_to_people(fleet).message,
      "Settling: nodes start at " + start + " unless ConfigMap gpu-operator/mps-config or its DaemonSets change again");
  // The same for the whole policy, which no status says.
  ReadingPass pass(fleet.world, fleet.index, fleet.settings, fleet.now);
  const std::map<std::string, std::string> settling = pass.settling();
  ASSERT_EQ(settling.size(), 1U);
  EXPECT_THAT(settling.at("default"), HasSubstr("nodes start at " + start));
  ReadingPass later(fleet.world, fleet.index, fleet.settings, fleet.now + std::chrono::seconds(11));
  EXPECT_TRUE(later.settling().empty());
}

}  // namespace
}  // namespace gso::test::explain_steps_test
