// Situations that node.partitioning must get right, one after the other.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/time.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/partitioning/node_moves.h"
#include "tests/reconcilers/partitioning/slice_cluster.h"

namespace gso::testing::partitioning_cases_test {
namespace {

using namespace std::chrono_literals;
using Change = std::function<void(SliceCluster&)>;

Json mark_on(SliceCluster& cluster, const std::string& node) {
  return Json::parse(cluster.annotations(node)[kMark].get<std::string>());
}

void renew_lease(SliceCluster& cluster, int version) {
  const std::string now = k8s::format_time(cluster.now());
  cluster.object("Lease", "gpu-partitioner.nebuly.com") = {
      {"apiVersion", "coordination.k8s.io/v1"},
      {"kind", "Lease"},
      {"metadata",
       {{"name", "gpu-partitioner.nebuly.com"},
        {"namespace", "nebuly-nos"},
        {"uid", "lease"},
        {"resourceVersion", std::to_string(version)}}},
      {"spec", {{"holderIdentity", "nos-0"}, {"leaseDurationSeconds", 15}, {"renewTime", now}}}};
}

bool has(const std::vector<std::string>& texts, std::string_view part) {
  return std::ranges::any_of(texts, [&](const std::string& text) { return text.contains(part); });
}

Json container_with(const std::string& resource, const std::string& count) {
  return {{"containers", {{{"name", "c"}, {"image", "app:1"}, {"resources", {{"limits", {{resource, count}}}}}}}}};
}

// A node with one free GPU of 40 GB, and a pod that waits for 10 GB.
SliceCluster waiting_pod() {
  SliceCluster cluster;
  cluster.node("n1", 1, 40960);
  cluster.pod("p1", {10});
  return cluster;
}

// Passes five minutes apart until one moves labels; its plan.
Plan until_moves(SliceCluster& cluster) {
  for (int pass = 0; pass < 12; ++pass) {
    Plan plan = cluster.plan();
    if (!patches_in(plan).empty()) return plan;
    cluster.apply(plan);
    cluster.wait(5min);
  }
  ADD_FAILURE() << "no label moves";
  return {};
}

TEST(PartitioningCases, WhileNosRenewsItsLeaseTheOperatorOnlyObserves) {
  SliceCluster cluster = waiting_pod();
  for (int pass = 0; pass < 20; ++pass) {
    renew_lease(cluster, pass + 1);
    const Plan plan = cluster.plan();
    EXPECT_TRUE(writes_of(plan).empty());
    EXPECT_TRUE(has(findings_about(plan, "gpu-partitioner.nebuly.com"), "the operator only observes"));
    cluster.wait(20s);
  }
  cluster.wait(60s);
  EXPECT_EQ(cluster.settle(), 2) << "nobody renews the Lease any more";
}

TEST(PartitioningCases, AReleasedLeaseHoldsNothing) {
  SliceCluster cluster = waiting_pod();
  renew_lease(cluster, 1);
  cluster.object("Lease", "gpu-partitioner.nebuly.com")["spec"]["holderIdentity"] = "";
  EXPECT_EQ(cluster.settle(), 2);
}

TEST(PartitioningCases, WhatIsOnlyObservedIsSaidAndNotWritten) {
  const auto expect = [](const char* object, const char* said, const Change& change) {
    SCOPED_TRACE(said);
    SliceCluster cluster = waiting_pod();
    change(cluster);
    EXPECT_EQ(cluster.settle(), 0);
    const Plan plan = cluster.plan();
    EXPECT_TRUE(has(findings_about(plan, object), said)) << ::testing::PrintToString(findings_about(plan, object));
    const bool is_planned = has(events_about(plan, "p1"), "planned on node n1; partitioning is only observed");
    EXPECT_EQ(is_planned, std::string_view(object) != "n1");
  };
  const char* map = "nos-device-plugin-configs";
  expect(map, "It would change: node n1 gets 1 x 10 GiB (none before)",
         [](auto& c) { c.mode = PartitioningMode::observe; });
  // Its writes were once dropped without a word.
  expect(map, "It would change: node n1 gets 1 x 10 GiB", [](auto& c) { c.settings.rollouts = PolicyMode::observe; });
  expect("n1", "partitioning is switched off", [](auto& c) { c.mode = PartitioningMode::off; });
  expect("n1", "gpusharing.dev/paused", [](auto& c) {
    c.object("ConfigMap", "nos-device-plugin-configs")["metadata"]["annotations"]["gpusharing.dev/paused"] = "true";
  });
}

TEST(PartitioningCases, ANodeThatMustNotBeCutIsNamedAndAnotherOneIsCut) {
  const auto expect = [](const char* said, const Change& change) {
    SCOPED_TRACE(said);
    SliceCluster cluster = waiting_pod();
    change(cluster);
    EXPECT_EQ(cluster.settle(), 0);
    const Plan plan = cluster.plan();
    const auto findings = findings_about(plan, "n1");
    EXPECT_TRUE(has(findings, said) || has(events_about(plan, "p1"), said)) << ::testing::PrintToString(findings);
    EXPECT_LE(findings.size(), 1U);
    cluster.node("n2", 1, 40960);
    EXPECT_EQ(cluster.settle(), 2);
    EXPECT_EQ(cluster.touched(), std::set<std::string>{"n2"});
  };
  expect("Ready, not cordoned", [](auto& c) { c.object("Node", "n1")["spec"]["unschedulable"] = true; });
  expect("Ready, not cordoned",
         [](auto& c) { c.object("Node", "n1")["status"]["conditions"][0]["status"] = "Unknown"; });
  expect("gpusharing.dev/hold", [](auto& c) { c.annotations("n1")["gpusharing.dev/hold"] = "true"; });
  expect("older than Volta", [](auto& c) { c.labels("n1")["nvidia.com/gpu.compute.major"] = "6"; });
  expect("pod ns/training uses whole GPUs",
         [](auto& c) { c.pod("training", {}, {.node = "n1", .spec = container_with("nvidia.com/gpu", "1")}); });
}

// The plugin hands out one slice to a container.
TEST(PartitioningCases, AContainerThatAsksForTwoSlicesIsNotPlannedFor) {
  SliceCluster cluster = waiting_pod();
  cluster.pod("p1", {}, {.spec = container_with("nvidia.com/gpu-10gb", "2")});
  EXPECT_EQ(cluster.settle(), 0);
}

TEST(PartitioningCases, TheFormerLabelAloneCountsAndThePresentOneComesWithTheFirstProfile) {
  SliceCluster cluster = waiting_pod();
  cluster.labels("n1").erase(kPresent);
  cluster.labels("n1")[kFormer] = "mps";
  const std::vector<PatchNode> patches = patches_in(until_moves(cluster));
  ASSERT_EQ(patches.size(), 1U);
  EXPECT_EQ(patches[0].set.at(kPresent), "mps");
  EXPECT_TRUE(patches[0].set.contains(kConfig));
  EXPECT_EQ(Json::parse(patches[0].set_annotations.at(kMark))["labelled"], true);
  EXPECT_TRUE(patches[0].resource_version.has_value()) << "a lost race is planned again";
}

TEST(PartitioningCases, AForeignProfileLabelIsReplacedAndRemembered) {
  SliceCluster cluster = waiting_pod();
  cluster.labels("n1")[kConfig] = "team-profile";
  EXPECT_EQ(cluster.settle(), 2);
  EXPECT_TRUE(cluster.label("n1").starts_with("gso-n1-"));
  EXPECT_EQ(mark_on(cluster, "n1")["before"], "team-profile");
  cluster.pod("p2", {20});
  EXPECT_EQ(cluster.settle(), 2);
  EXPECT_EQ(mark_on(cluster, "n1")["before"], "team-profile") << "of the first move";
}

TEST(PartitioningCases, IdleSlicesAreRemovedOnlyIfThatIsSwitchedOn) {
  for (const bool on : {false, true}) {
    SliceCluster cluster;
    if (on) cluster.settings.partitioning.remove_idle_after = 1h;
    cluster.node("n1", 1, 40960, {{0, {{10, 1}}}}, {{0, {{10, 2}}}});
    cluster.pod("user", {10}, {.node = "n1"});
    cluster.pass(11, 5min);
    EXPECT_EQ(cluster.free("n1"), (Slices{{0, {{10, 2}}}})) << "idle for 50 minutes";
    cluster.pass(9, 5min);
    EXPECT_EQ(cluster.touched().size(), on ? 1U : 0U);
    EXPECT_EQ(cluster.used("n1"), (Slices{{0, {{10, 1}}}}));
    EXPECT_EQ(cluster.free("n1"), on ? Slices{} : (Slices{{0, {{10, 2}}}}));
  }
}

// Both want the only GPU: the Event of the one with the higher priority names the node.
TEST(PartitioningCases, OfTwoPodsThatWantOneGpuTheOneOfHigherPriorityGetsIt) {
  SliceCluster cluster;
  cluster.node("n1", 1, 40960);
  cluster.pod("a-batch", {30}, {.priority = 1});
  cluster.pod("z-service", {30}, {.priority = 100});
  std::vector<std::string> batch, service;
  for (int pass = 0; pass < 6; ++pass) {
    const Plan plan = cluster.plan();
    std::ranges::copy(events_about(plan, "a-batch"), std::back_inserter(batch));
    std::ranges::copy(events_about(plan, "z-service"), std::back_inserter(service));
    cluster.apply(plan);
    cluster.wait(5min);
  }
  const auto names_node = [](const std::string& note) { return note.find("n1") != std::string::npos; };
  EXPECT_TRUE(std::ranges::any_of(service, names_node));
  EXPECT_FALSE(std::ranges::any_of(batch, names_node));
}

TEST(PartitioningCases, AFreeSliceThatAPodWaitsForIsNotIdle) {
  SliceCluster cluster;
  cluster.settings.partitioning.remove_idle_after = 1h;
  cluster.node("n1", 1, 40960, {}, {{0, {{10, 2}}}});
  cluster.pod("p1", {10});
  cluster.pod("p2", {10});
  cluster.pass(20, 5min);
  EXPECT_TRUE(cluster.touched().empty());
}

TEST(PartitioningCases, IdleNodesComeFirstUnlessSlicesAreConsolidated) {
  for (const bool consolidates : {false, true}) {
    SliceCluster cluster;
    cluster.settings.partitioning.consolidate = consolidates;
    cluster.node("busy", 1, 40960, {{0, {{10, 1}}}});
    cluster.pod("user", {10}, {.node = "busy"});
    cluster.node("idle", 1, 40960);
    cluster.pod("p1", {10});
    EXPECT_EQ(cluster.settle(), 2);
    EXPECT_EQ(cluster.touched(), std::set<std::string>{consolidates ? "busy" : "idle"});
  }
}

TEST(PartitioningCases, NoMoreLabelsMoveAtOnceThanTheBudgetAllows) {
  SliceCluster cluster;
  cluster.settings.cluster_max_unavailable = {1, false};
  for (const char* node : {"n1", "n2", "n3"}) cluster.node(node, 1, 40960);
  for (const char* pod : {"p1", "p2", "p3"}) cluster.pod(pod, {39});
  Plan plan = until_moves(cluster);
  EXPECT_EQ(patches_in(plan).size(), 1U);
  cluster.apply(plan, false);
  for (int pass = 0; pass < 2; ++pass) {
    cluster.wait(1min);
    plan = cluster.plan();
    EXPECT_TRUE(patches_in(plan).empty()) << "the first node does not show its slices yet";
  }
  cluster.report(*cluster.touched().begin());
  EXPECT_EQ(patches_in(until_moves(cluster)).size(), 1U);
  cluster.settle();
  EXPECT_EQ(cluster.touched().size(), 3U);
}

// Node n1 is on its way from two slices of 10 GB to one of 30.
class DuringAMove : public ::testing::Test {
 protected:
  DuringAMove() {
    cluster.node("n1", 1, 40960, {}, {{0, {{10, 2}}}});
    cluster.pod("p1", {30});
    cluster.apply(until_moves(cluster), false);
  }
  SliceCluster cluster;
};

TEST_F(DuringAMove, TheStatusOfBeforeIsNotPlannedFrom) {
  cluster.pod("p2", {20});
  for (int pass = 0; pass < 3; ++pass) {
    EXPECT_TRUE(patches_in(cluster.pass(1, 3min, false)).empty()) << "the node still reports two slices of 10 GB";
  }
}

TEST_F(DuringAMove, ItIsConfirmedByTheReportOfTheAgentAndByTheKubelet) {
  cluster.report("n1");
  Json& gpus = cluster.object("Node", "n1")["status"]["allocatable"]["nvidia.com/gpu-30gb"];
  gpus = "0";
  cluster.pod("p2", {8});
  cluster.wait(1min);
  EXPECT_TRUE(events_about(cluster.plan(), "p2").empty()) << "the kubelet can hand out none of the new slices";
  gpus = "1";
  EXPECT_TRUE(has(events_about(cluster.plan(), "p2"), "planned on node n1"));
}

// It would hear that no node can help, and then, a minute later, where it is planned.
TEST_F(DuringAMove, APodThatComesHearsOfItOnceTheMoveIsOver) {
  cluster.pod("p2", {8});
  cluster.pod("p3", {35});
  cluster.wait(1min);
  const Plan during = cluster.plan();
  EXPECT_TRUE(events_about(during, "p2").empty()) << "the node does not report its slices yet";
  EXPECT_TRUE(has(events_about(during, "p3"), "their memory is planned for pods that come first"));
  cluster.report("n1");
  const Plan after = cluster.plan();
  EXPECT_TRUE(has(events_about(after, "p2"), "planned on node n1"));
  EXPECT_EQ(events_about(after, "p3"), events_about(during, "p3")) << "an Event of another text would be a second one";
}

// The scheduler gives a slice only to a pod that asks for its size, so only a plan could take it: by cutting it.
TEST(PartitioningCases, ASmallerPodDoesNotTakeTheFinishedSliceOfALargerOneBeforeThatIsBound) {
  SliceCluster cluster;
  cluster.node("n", 1, 25'476);
  cluster.pod("large", {20});
  cluster.settle();
  const Slices finished = {{0, {{20, 1}}}};
  ASSERT_EQ(cluster.free("n"), finished);
  cluster.pod("small", {5});
  EXPECT_EQ(cluster.settle(), 0) << "as many pods are served as before";
  EXPECT_EQ(cluster.free("n"), finished);
}

// They are more, so they are worth its slice; it has until their key is projected to be bound.
TEST(PartitioningCases, SeveralSmallerPodsTakeTheFinishedSliceOfALargerOneOnlyIfThatIsNotBoundMeanwhile) {
  for (const bool bound : {true, false}) {
    SliceCluster cluster;
    cluster.node("n", 1, 25'476);
    cluster.pod("large", {20});
    cluster.settle();
    const std::string key = cluster.label("n");
    for (const char* name : {"a", "b"}) cluster.pod(name, {5});
    cluster.plan();
    cluster.wait(10s);
    const Plan keys = cluster.plan();
    ASSERT_EQ(writes_of(keys), std::vector<std::string>{"PatchConfigMap"}) << bound;
    cluster.apply(keys);
    cluster.plan();
    cluster.wait(99s);
    EXPECT_TRUE(writes_of(cluster.plan()).empty()) << bound;
    if (bound) cluster.bind("large", "n");
    cluster.settle();
    EXPECT_EQ(cluster.label("n") == key, bound);
    EXPECT_EQ(cluster.free("n")[0][5], bound ? 0 : 2);
  }
}

// Its two slices are of the size that the smaller one asks for: whom the scheduler binds first has them.
TEST(PartitioningCases, ASmallerPodThatAsksForTheSameSizeChangesNothingOfTheFinishedSlices) {
  SliceCluster cluster;
  cluster.node("n", 2, 25'476);
  cluster.pod("large", {20, 20});
  cluster.settle();
  cluster.pod("small", {20});
  EXPECT_EQ(cluster.settle(), 0);
  EXPECT_EQ(cluster.free("n"), (Slices{{0, {{20, 1}}}, {1, {{20, 1}}}}));
}

TEST(PartitioningCases, AKeyKeepsPodsOnlyWithTheirSlicesOnTheGpusWhereTheyAre) {
  PartitionedNode node;
  node.slices.gpus.resize(2);
  node.slices.gpus[0].used[10] = 1;
  EXPECT_TRUE(keeps_pods(node, {{0, {{10, 1}}}}));
  EXPECT_TRUE(keeps_pods(node, {{0, {{10, 2}}}, {1, {{20, 1}}}}));
  EXPECT_FALSE(keeps_pods(node, {{1, {{10, 1}}}}));
  EXPECT_FALSE(keeps_pods(node, {{0, {{20, 1}}}}));
}

}  // namespace
}  // namespace gso::testing::partitioning_cases_test
