// Pods that make room for one another: who moves, and what stays as it is.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace gso::testing::packing_moves_test
