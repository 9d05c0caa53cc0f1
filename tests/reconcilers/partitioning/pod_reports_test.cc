// In which order waiting pods are served, and what they and their nodes hear: it must be true, also where not
// everything has been compared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reconcilers/model/snapshot.h"
#include "reconcilers/partitioning/partitioning.h"
#include "reconcilers/partitioning/slice_plan.h"
#include "tests/reconcilers/partitioning/slice_cluster.h"

namespace gso::testing::pod_reports_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two nodes with GPUs of 16 GiB and one of 40, all in use.
void begin(SliceCluster& cluster) {
  for (const char* node : {"n1", "n2"}) cluster.node(node, 1, 16'900, {{0, {{15, 1}}}});
  cluster.node("n3", 1, 41'860, {{0, {{30, 1}}}});
  cluster.pod("user", {30}, {.node = "n3"});
}

TEST(PodReports, NameTheNearestAlternativeOfAllNodes) {
  SliceCluster cluster;
  begin(cluster);
  cluster.pod("p", {30});
  EXPECT_THAT(events_about(cluster.plan(), "p"),
              ElementsAre("needs 30 GiB of GPU memory; node n3 could free 1 x 30 GiB; held by pod ns/user"));
}

TEST(PodReports, OfVeryManyKindsOfPodsSayWhichNodesWereCompared) {
  SliceCluster cluster;
  begin(cluster);
  constexpr int kKinds = 1'500;
  for (int i = 0; i < kKinds; ++i) {
    const std::string name = "p" + std::to_string(i);
    cluster.pod(name, {30}, {.spec = {{"tolerations", {{{"key", name}, {"operator", "Exists"}}}}}});
  }
  const Plan plan = cluster.plan();
  for (const std::string& pod : {std::string("p0"), "p" + std::to_string(kKinds - 1)}) {
    EXPECT_THAT(events_about(plan, pod),
                ElementsAre(HasSubstr("none of the first 2 of 3 nodes that admit it could free enough")))
        << pod;
  }
}

TEST(PodReports, SpeakOfOneNodeInTheSingular) {
  SliceCluster cluster;
  cluster.node("n1", 1, 41'860)["spec"]["unschedulable"] = true;
  cluster.pod("p", {10});
  EXPECT_THAT(events_about(cluster.plan(), "p"),
              ElementsAre(HasSubstr("the only node that is labelled for partitioning does not admit it")));
}

// The replicas for pods that ask for these slices; "" for none.
std::string replicas(std::int64_t memory_mib, const std::vector<std::int64_t>& asked) {
  NodeSlices slices;
  slices.gpus = {{{}, {}, memory_mib}};
  std::vector<SlicePod> pods;
  for (const std::int64_t gigabytes : asked) pods.emplace_back().slices = std::vector<std::int64_t>{gigabytes};
  std::vector<const SlicePod*> pointers;
  for (const SlicePod& pod : pods) pointers.push_back(&pod);
  const auto found = nearest_replicas(slices, pointers, {});
  return found ? std::to_string(found->replicas) + " of " + std::to_string(found->gigabytes) : "";
}

TEST(OfficialPlugin, ReplicasAreAsLargeAsTheLargestSliceThatFitsTwice) {
  EXPECT_EQ(replicas(41472, {10}), "4 of 10");
  EXPECT_EQ(replicas(41472, {5, 10, 20}), "2 of 20");
  EXPECT_EQ(replicas(41472, {12}), "3 of 13");
  EXPECT_EQ(replicas(41472, {30, 10}), "4 of 10") << "30 GiB do not fit twice";
  EXPECT_EQ(replicas(41472, {30}), "");
  EXPECT_EQ(replicas(41472, {}), "");
  EXPECT_EQ(replicas(40960, {10}), "3 of 13") << "512 MiB are reserved";
  EXPECT_EQ(replicas(81920, {1}), "48 of 1") << "MPS has no more clients";
}

TEST(OfficialPlugin, TheFindingOfANodeThatItServesProposesAProfileAndNothingIsWritten) {
  SliceCluster cluster;
  Json& plugin = cluster.object("DaemonSet", "nvidia-device-plugin");
  Json official = plugin;
  official["spec"]["template"]["spec"].erase("nodeSelector");
  official["metadata"] = {{"name", "official"}, {"namespace", "gpu-operator"}, {"uid", "ds-2"}, {"generation", 1}};
  cluster.remove("DaemonSet", "nvidia-device-plugin");
  cluster.object("DaemonSet", "official") = official;
  cluster.node("n1", 1, 41472);
  cluster.pod("p1", {10});
  EXPECT_EQ(cluster.settle(), 0);
  const auto findings = findings_about(cluster.plan(), "n1");
  ASSERT_EQ(findings.size(), 1U);
  for (const char* part : {"DaemonSet gpu-operator/official of the official device plugin serves it",
                           "sharing.mps.resources: [{name: nvidia.com/gpu, replicas: 4}], with 10 GiB", "NvFractions",
                           "DRA with consumable capacity"}) {
    EXPECT_TRUE(findings[0].contains(part)) << part << "\n" << findings[0];
  }
}

TEST(OfficialPlugin, ANodeWithoutAnyPluginGetsNoProposal) {
  SliceCluster cluster;
  cluster.remove("DaemonSet", "nvidia-device-plugin");
  cluster.node("n1", 1, 41472);
  cluster.pod("p1", {10});
  const auto findings = findings_about(cluster.plan(), "n1");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_FALSE(findings[0].contains("official")) << findings[0];
}

SlicePod waiting(const std::string& name, std::int32_t priority, std::int64_t gigabytes) {
  SlicePod out;
  out.meta.name = name;
  out.meta.ns = Interned("ns");
  out.phase = Interned("Pending");
  out.unschedulable = true;
  out.priority = priority;
  out.slices = {gigabytes};
  return out;
}

// The packing of a large fleet serves them in this order.
TEST(PendingPods, HigherPrioritiesComeFirstAndThenSmallerRequests) {
  World world;
  world.partitioning.pods.apply(waiting("batch", 1, 10));
  world.partitioning.pods.apply(waiting("large-service", 100, 30));
  world.partitioning.pods.apply(waiting("small-service", 100, 20));
  std::vector<std::string> names;
  for (const SlicePod* pod : pending_pods(world, 1000).considered) names.push_back(pod->meta.name);
  EXPECT_EQ(names, (std::vector<std::string>{"small-service", "large-service", "batch"}));
}

}  // namespace
}  // namespace gso::testing::pod_reports_test
