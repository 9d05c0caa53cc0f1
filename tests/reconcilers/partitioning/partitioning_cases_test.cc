// Situations that node.partitioning must get right, one after the other.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "k8sclient/value/time.h"
#include "reconcilers/partitioning/node_moves.h"
#include "tests/reconcilers/partitioning/slice_cluster.h"

namespace gso::testing::partitioning_cases_test {
namespace {

using namespace std::chrono_literals;

constexpr const char* kConfig = "nvidia.com/device-plugin.config";
constexpr const char* kPresent = "nos.nebuly.com/gpu-partitioning";
constexpr const char* kFormer = "nos.nebuly.ai/gpu-partitioning";
constexpr const char* kMark = "gpusharing.dev/partitioning";

Json& labels_of(SliceCluster& cluster, const std::string& node) {
  return cluster.object("Node", node)["metadata"]["labels"];
}

Json mark_on(SliceCluster& cluster, const std::string& node) {
  return Json::parse(cluster.object("Node", node)["metadata"]["annotations"][kMark].get<std::string>());
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

std::vector<PatchNode> patches_in(const Plan& plan) {
  std::vector<PatchNode> out;
  for (const PlannedAction& planned : plan.actions) {
    if (const auto* patch = std::get_if<PatchNode>(&planned.action)) out.push_back(*patch);
  }
  return out;
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
  SliceCluster cluster;
  cluster.node("n1", 1, 40960);
  cluster.pod("p1", {10});
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
  SliceCluster cluster;
  cluster.node("n1", 1, 40960);
  cluster.pod("p1", {10});
  renew_lease(cluster, 1);
  cluster.object("Lease", "gpu-partitioner.nebuly.com")["spec"]["holderIdentity"] = "";
  EXPECT_EQ(cluster.settle(), 2);
}

TEST(PartitioningCases, TheFormerLabelAloneCountsAndThePresentOneComesWithTheFirstProfile) {
  SliceCluster cluster;
  cluster.node("n1", 1, 40960);
  labels_of(cluster, "n1").erase(kPresent);
  labels_of(cluster, "n1")[kFormer] = "mps";
  cluster.pod("p1", {10});
  const std::vector<PatchNode> patches = patches_in(until_moves(cluster));
  ASSERT_EQ(patches.size(), 1U);
  EXPECT_EQ(patches[0].set.at(kPresent), "mps");
  EXPECT_TRUE(patches[0].set.contains(kConfig));
  EXPECT_EQ(Json::parse(patches[0].set_annotations.at(kMark))["labelled"], true);
  EXPECT_TRUE(patches[0].resource_version.has_value()) << "a lost race is planned again";
}

TEST(PartitioningCases, ANodeThatIsNotReadyOrCordonedIsNotPlannedFor) {
  for (const bool cordoned : {true, false}) {
    SliceCluster cluster;
    Json& node = cluster.node("n1", 1, 40960);
    if (cordoned) {
      node["spec"]["unschedulable"] = true;
    } else {
      node["status"]["conditions"][0]["status"] = "Unknown";
    }
    cluster.pod("p1", {10});
    EXPECT_EQ(cluster.settle(), 0);
    EXPECT_TRUE(has(events_about(cluster.plan(), "p1"), "Ready, not cordoned"));
    cluster.node("n2", 1, 40960);
    EXPECT_EQ(cluster.settle(), 2);
    EXPECT_EQ(cluster.touched(), std::set<std::string>{"n2"});
  }
}

TEST(PartitioningCases, AForeignProfileLabelIsReplacedAndRemembered) {
  SliceCluster cluster;
  cluster.node("n1", 1, 40960);
  labels_of(cluster, "n1")[kConfig] = "team-profile";
  cluster.pod("p1", {10});
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
    for (int pass = 0; pass < 20; ++pass) {
      cluster.apply(cluster.plan());
      if (pass == 10) {
        EXPECT_EQ(cluster.free("n1"), (Slices{{0, {{10, 2}}}})) << "idle for 50 minutes";
      }
      cluster.wait(5min);
    }
    EXPECT_EQ(cluster.touched().size(), on ? 1U : 0U);
    EXPECT_EQ(cluster.used("n1"), (Slices{{0, {{10, 1}}}}));
    EXPECT_EQ(cluster.free("n1"), on ? Slices{} : (Slices{{0, {{10, 2}}}}));
  }
}

Json container_with(const std::string& resource, const std::string& count) {
  return {{"containers", {{{"name", "c"}, {"image", "app:1"}, {"resources", {{"limits", {{resource, count}}}}}}}}};
}

// The plugin hands out one slice to a container.
TEST(PartitioningCases, AContainerThatAsksForTwoSlicesIsNotPlannedFor) {
  SliceCluster cluster;
  cluster.node("n1", 1, 40960);
  cluster.pod("p1", {}, {.spec = container_with("nvidia.com/gpu-10gb", "2")});
  EXPECT_EQ(cluster.settle(), 0);
}

TEST(PartitioningCases, ANodeWhereAPodUsesAWholeGpuIsLeftAlone) {
  SliceCluster cluster;
  cluster.node("n1", 2, 40960);
  cluster.pod("training", {}, {.node = "n1", .spec = container_with("nvidia.com/gpu", "1")});
  cluster.pod("p1", {10});
  EXPECT_EQ(cluster.settle(), 0);
  const auto findings = findings_about(cluster.plan(), "n1");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].find("pod ns/training uses whole GPUs"), std::string::npos);
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
  for (int pass = 0; pass < 20; ++pass) {
    cluster.apply(cluster.plan());
    cluster.wait(5min);
  }
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

TEST(PartitioningCases, AStatusOlderThanTheLastMoveIsNotPlannedFrom) {
  SliceCluster cluster;
  cluster.node("n1", 1, 40960, {}, {{0, {{10, 2}}}});
  cluster.pod("p1", {30});
  const Plan plan = until_moves(cluster);
  cluster.apply(plan, false);
  cluster.pod("p2", {20});
  for (int pass = 0; pass < 3; ++pass) {
    cluster.wait(3min);
    const Plan next = cluster.plan();
    EXPECT_TRUE(patches_in(next).empty()) << "the node still reports two slices of 10 GB";
    cluster.apply(next, false);
  }
}

TEST(PartitioningCases, AMoveIsConfirmedByTheReportOfTheAgentAndByTheKubelet) {
  SliceCluster cluster;
  cluster.node("n1", 1, 40960, {}, {{0, {{10, 2}}}});
  cluster.pod("p1", {30});
  cluster.apply(until_moves(cluster), false);
  cluster.report("n1");
  cluster.object("Node", "n1")["status"]["allocatable"]["nvidia.com/gpu-30gb"] = "0";
  cluster.pod("p2", {8});
  cluster.wait(1min);
  EXPECT_TRUE(events_about(cluster.plan(), "p2").empty()) << "the kubelet can hand out none of the new slices";
  cluster.object("Node", "n1")["status"]["allocatable"]["nvidia.com/gpu-30gb"] = "1";
  EXPECT_TRUE(has(events_about(cluster.plan(), "p2"), "planned on node n1"));
}

// It would hear that no node can help, and then, a minute later, where it is planned.
TEST(PartitioningCases, APodThatComesDuringAMoveHearsOfItOnceTheMoveIsOver) {
  SliceCluster cluster;
  cluster.node("n1", 1, 40960, {}, {{0, {{10, 2}}}});
  cluster.pod("p1", {30});
  cluster.apply(until_moves(cluster), false);
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

// The pod's process holds memory of one GPU: as many slices elsewhere are of no use to it.
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
    if (bound) {
      cluster.object("Pod", "large")["spec"]["nodeName"] = "n";
      cluster.object("Pod", "large")["status"]["phase"] = "Running";
    }
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

TEST(PartitioningCases, AGpuBeforeVoltaIsNamedAndLeftAlone) {
  SliceCluster cluster;
  cluster.node("n1", 1, 16384);
  labels_of(cluster, "n1")["nvidia.com/gpu.compute.major"] = "6";
  cluster.pod("p1", {10});
  EXPECT_EQ(cluster.settle(), 0);
  EXPECT_TRUE(has(findings_about(cluster.plan(), "n1"), "older than Volta"));
}

TEST(PartitioningCases, APersonsHoldAndAPausedConfigMapAreRespected) {
  for (const bool paused : {false, true}) {
    SliceCluster cluster;
    cluster.node("n1", 1, 40960);
    if (paused) {
      cluster.object("ConfigMap", "nos-device-plugin-configs")["metadata"]["annotations"]["gpusharing.dev/paused"] =
          "true";
    } else {
      cluster.object("Node", "n1")["metadata"]["annotations"]["gpusharing.dev/hold"] = "true";
    }
    cluster.pod("p1", {10});
    EXPECT_EQ(cluster.settle(), 0);
    EXPECT_EQ(findings_about(cluster.plan(), "n1").size(), 1U);
  }
}

}  // namespace
}  // namespace gso::testing::partitioning_cases_test
