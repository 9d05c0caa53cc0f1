// Pods that make room for one another: who moves, and what stays as it is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "reconcilers/partitioning/packing.h"

namespace gso::testing::packing_moves_test {
namespace {

// A node with one GPU: GiB of room, and its free slices by size.
PackNode one_gpu(std::int64_t room, const SizeCounts& free) {
  PackNode out;
  out.gpus = {{room, free}};
  out.taken.resize(free.size());
  out.changeable = true;
  return out;
}

std::vector<bool> changed(const Packing& packing) {
  std::vector<bool> out;
  for (const NodePacking& node : packing.nodes) out.push_back(node.changed());
  return out;
}

using NodeOf = std::vector<std::optional<std::size_t>>;

// Three nodes have a free slice of 10 GiB each, and room for another one. The last of three pods can only be on the
// first node, whose pod goes to the second one, whose pod goes to the third one. A fourth pod needs a new slice
// elsewhere, so that the plan changes something.
TEST(PackingMoves, APodThatMovedForAnotherLeavesItsSliceFree) {
  PackInput input;
  input.sizes = {10, 20};
  input.nodes = {one_gpu(10, {1, 0}), one_gpu(10, {1, 0}), one_gpu(10, {1, 0}), one_gpu(20, {0, 0})};
  input.admissions = {{0, 1}, {1, 2}, {0}, {3}};
  input.pods = {{9, {10}, 0}, {8, {10}, 1}, {5, {10}, 2}, {0, {20}, 3}};
  const Packing packing = pack(input);
  EXPECT_EQ(packing.node_of, (NodeOf{1, 2, 0, 3}));
  EXPECT_EQ(changed(packing), (std::vector<bool>{false, false, false, true}));
}

// The first pod has the free slice of the first node. The second one can only be there, and there is room for it; the
// first one could only go where two free slices would be given up. With so many pods no exhaustive search mends that.
TEST(PackingMoves, APodMovesForAnotherOnlyToASliceThatIsThere) {
  PackInput input;
  input.sizes = {5, 10};
  input.nodes = {one_gpu(10, {0, 1}), one_gpu(0, {2, 0}), one_gpu(0, {30, 0})};
  input.admissions = {{0, 1}, {0}, {2}};
  input.pods = {{9, {10}, 0}, {5, {10}, 1}};
  for (int i = 0; i < 30; ++i) input.pods.push_back({0, {5}, 2});
  const Packing packing = pack(input);
  EXPECT_EQ(packing.node_of[0], 0U);
  EXPECT_EQ(packing.node_of[1], 0U);
  EXPECT_EQ(changed(packing), (std::vector<bool>{true, false, false}));
}

// 300 nodes of eight GPUs, every second GPU with free slices, and pods that each ask for two sizes of 79, hardly one
// like another: the shape that costs most.
PackInput varied(std::int64_t room, std::size_t pods) {
  constexpr std::size_t kSizes = 79;
  PackInput out;
  for (std::size_t t = 0; t < kSizes; ++t) out.sizes.push_back(static_cast<std::int64_t>(t) + 1);
  auto& all = out.admissions.emplace_back();
  for (std::size_t n = 0; n < 300; ++n) {
    PackNode& node = out.nodes.emplace_back();
    node.taken.resize(kSizes);
    node.changeable = true;
    for (std::size_t g = 0; g < 8; ++g) {
      PackGpu& gpu = node.gpus.emplace_back(room, SizeCounts(kSizes));
      if (g % 2 == 0) continue;
      for (const std::size_t t : {(n + g) % 20, (3 * n + g) % 20}) {
        gpu.room -= out.sizes[t];
        ++gpu.free[t];
      }
    }
    all.push_back(n);
  }
  for (std::size_t p = 0; p < pods; ++p) {
    const std::size_t small = p * 7 % kSizes;
    const std::size_t large = (small + p / kSizes * 11 % kSizes) % kSizes;
    out.pods.push_back({0, {out.sizes[std::min(small, large)], out.sizes[std::max(small, large)]}, 0});
  }
  return out;
}

// So many evaluations of a node cost less than half a second in a release build.
constexpr std::size_t kMostWork = 250'000;

TEST(PackingMoves, TheWorkForManyDifferentPodsIsBoundedAndAllAreServed) {
  const PackInput input = varied(79, 1000);
  const Packing packing = pack(input);
  EXPECT_LT(packing.work, kMostWork);
  EXPECT_GT(packing.compared, 100U);
  EXPECT_LT(packing.compared, 1000U) << "the others get the first place that is found";
  EXPECT_EQ(packing.planned, 1000U);
  EXPECT_TRUE(std::ranges::all_of(packing.node_of, [](const auto& node) { return node.has_value(); }));
  for (const NodePacking& node : packing.nodes) EXPECT_EQ(node.destroyed, 0) << "there is room beside free slices";
}

TEST(PackingMoves, TheWorkForManyDifferentPodsThatFitNowhereIsBounded) {
  PackInput input = varied(39, 3000);
  for (PackPod& pod : input.pods) pod.slices = {40 + pod.slices[0] / 2, 40 + pod.slices[1] / 2};
  const Packing packing = pack(input);
  EXPECT_LT(packing.work, kMostWork);
  EXPECT_LT(packing.planned, 3000U) << "the others wait";
}

TEST(PackingMoves, FewSizesAreComparedOnAllNodes) {
  PackInput input = varied(79, 1000);
  for (PackPod& pod : input.pods) pod.slices = {10};
  const Packing packing = pack(input);
  EXPECT_EQ(packing.compared, 1000U);
}

}  // namespace
}  // namespace gso::testing::packing_moves_test
