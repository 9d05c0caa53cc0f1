// A machine that comes back under the name of another one, between the writing of a key and the move of the label: the
// key was made for other GPUs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "slice_cluster.h"

namespace gso::testing::replaced_nodes_test {
namespace {

using namespace std::chrono_literals;
using ::testing::SizeIs;

// A key for the node's pods is written, and its label does not name it yet. Then the machine is replaced.
void replace_after_the_key(SliceCluster& cluster, int gpus, int memory_mib) {
  cluster.apply(cluster.plan());  // The batch window begins.
  cluster.wait(70s);
  cluster.apply(cluster.plan());
  ASSERT_THAT(cluster.keys(), SizeIs(1)) << "the key for the former machine";
  cluster.apply(cluster.plan());  // The operator sees it, and waits for its projection.
  cluster.remove("Node", "n");
  cluster.node("n", gpus, memory_mib);
  for (int pass = 0; pass < 4; ++pass) {
    cluster.wait(5min);
    cluster.apply(cluster.plan());
  }
}

// What the node's label names.
Slices named(SliceCluster& cluster) {
  const std::string key = cluster.label("n");
  if (key.empty()) return {};
  return slices_of_document(
      cluster.object("ConfigMap", "nos-device-plugin-configs").at("data").at(key).get<std::string>());
}

TEST(ReplacedNodes, AMachineWithFewerGpusGetsNoSlicesOfTheGpuThatItLacks) {
  SliceCluster cluster;
  cluster.node("n", 2, 41'860);
  cluster.pod("a", {39});
  cluster.pod("b", {39});
  replace_after_the_key(cluster, 1, 41'860);
  EXPECT_EQ(named(cluster), (Slices{{0, {{39, 1}}}}));
}

TEST(ReplacedNodes, AMachineWithLessMemoryGetsNoMoreSlicesThanItHas) {
  SliceCluster cluster;
  cluster.node("n", 1, 41'860);
  cluster.pod("a", {10});
  cluster.pod("b", {20});
  replace_after_the_key(cluster, 1, 25'476);  // 24 GiB: one of the two fits.
  int gigabytes = 0;
  for (const auto& [gpu, sizes] : named(cluster))
    for (const auto& [size, count] : sizes) gigabytes += size * count;
  EXPECT_GT(gigabytes, 0);
  EXPECT_LE(gigabytes, 24);
}

TEST(ReplacedNodes, AMachineThatIsAlikeGetsTheKeyThatIsThere) {
  SliceCluster cluster;
  cluster.node("n", 1, 41'860);
  cluster.pod("a", {10});
  replace_after_the_key(cluster, 1, 41'860);
  EXPECT_EQ(named(cluster), (Slices{{0, {{10, 1}}}}));
}

}  // namespace
}  // namespace gso::testing::replaced_nodes_test
