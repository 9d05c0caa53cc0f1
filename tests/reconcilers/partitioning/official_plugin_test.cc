// What is proposed where the official device plugin serves a node that is labelled for partitioning.
#include "reconcilers/partitioning/partitioning.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/reconcilers/partitioning/slice_cluster.h"

namespace gso::testing::official_plugin_test {
namespace {

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

}  // namespace
}  // namespace gso::testing::official_plugin_test
