// The packing against the exact optimum, against what must hold for every input, and how pods make room for one
// another. Seeds are fixed.
#include <fmt/format.h>
#include <glpk.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "reconcilers/partitioning/packing.h"

namespace gso::testing::packing_test {
namespace {

std::int64_t sum(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

// All pods have one priority, and every node admits every pod.
PackInput random_input(std::mt19937& random, int nodes, int gpus, int pods) {
  const auto any = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  PackInput out;
  out.sizes = {2, 4, 5, 8, 10, 12, 16, 20};
  for (int n = 0; n < nodes; ++n) {
    PackNode& node = out.nodes.emplace_back();
    node.changeable = true;
    node.taken.resize(out.sizes.size());
    const int memory = any(1, 3) * 12;
    for (int g = 0; g < gpus; ++g) {
      PackGpu gpu{memory, SizeCounts(out.sizes.size())};
      if (any(0, 2) == 0) {
        gpu.room -= any(1, memory);
        node.busy = true;
      }
      while (any(0, 1) == 0) {
        const auto t = static_cast<std::size_t>(any(0, static_cast<int>(out.sizes.size()) - 1));
        if (out.sizes[t] > gpu.room) break;
        gpu.room -= out.sizes[t];
        ++gpu.free[t];
      }
      node.gpus.push_back(std::move(gpu));
    }
  }
  auto& all = out.admissions.emplace_back(out.nodes.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  for (int p = 0; p < pods; ++p) {
    PackPod pod;
    const int slices = any(0, 4) == 0 ? 2 : 1;
    for (int s = 0; s < slices; ++s)
      pod.slices.push_back(out.sizes[static_cast<std::size_t>(any(0, static_cast<int>(out.sizes.size()) - 1))]);
    std::ranges::sort(pod.slices);
    out.pods.push_back(std::move(pod));
  }
  std::ranges::stable_sort(out.pods, {}, [](const PackPod& pod) { return sum(pod.slices); });
  return out;
}

// GiB of a GPU that are not used, free slices included.
std::int64_t space_of(const PackInput& input, const PackGpu& gpu) {
  std::int64_t out = gpu.room;
  for (std::size_t t = 0; t < input.sizes.size(); ++t) out += gpu.free[t] * input.sizes[t];
  return out;
}

// The most pods that can be served, by integer programming: a binary variable for each pod and node, and one for each
// slice and GPU.
class Exact {
 public:
  explicit Exact(const PackInput& input) : problem_(glp_create_prob(), glp_delete_prob) {
    glp_set_obj_dir(problem_.get(), GLP_MAX);
    for (const PackNode& node : input.nodes) {
      auto& rows = gpu_rows_.emplace_back();
      for (const PackGpu& gpu : node.gpus) rows.push_back(row(GLP_UP, 0, static_cast<double>(space_of(input, gpu))));
    }
    for (const PackPod& pod : input.pods) {
      const int once = row(GLP_UP, 0, 1);
      for (std::size_t n = 0; n < input.nodes.size(); ++n) add_pod_on(pod, n, once);
    }
  }

  int most_pods() {
    glp_load_matrix(problem_.get(), static_cast<int>(rows_.size()) - 1, rows_.data(), columns_.data(), values_.data());
    glp_iocp options;
    glp_init_iocp(&options);
    options.presolve = GLP_ON;
    options.msg_lev = GLP_MSG_OFF;
    EXPECT_EQ(glp_intopt(problem_.get(), &options), 0);
    EXPECT_EQ(glp_mip_status(problem_.get()), GLP_OPT);
    return static_cast<int>(glp_mip_obj_val(problem_.get()) + 0.5);
  }

 private:
  int row(int kind, double least, double most) {
    const int out = glp_add_rows(problem_.get(), 1);
    glp_set_row_bnds(problem_.get(), out, kind, least, most);
    return out;
  }
  int binary(double worth) {
    const int out = glp_add_cols(problem_.get(), 1);
    glp_set_col_kind(problem_.get(), out, GLP_BV);
    glp_set_obj_coef(problem_.get(), out, worth);
    return out;
  }
  void set(int row, int column, double value) {
    rows_.push_back(row);
    columns_.push_back(column);
    values_.push_back(value);
  }
  void add_pod_on(const PackPod& pod, std::size_t n, int once) {
    const int served = binary(1);
    set(once, served, 1);
    for (const std::int64_t gigabytes : pod.slices) {
      const int on_one_gpu = row(GLP_FX, 0, 0);
      set(on_one_gpu, served, -1);
      for (const int gpu : gpu_rows_[n]) {
        const int there = binary(0);
        set(on_one_gpu, there, 1);
        set(gpu, there, static_cast<double>(gigabytes));
      }
    }
  }

  std::unique_ptr<glp_prob, decltype(&glp_delete_prob)> problem_;
  std::vector<std::vector<int>> gpu_rows_;
  std::vector<int> rows_{0}, columns_{0};  // The library counts from 1.
  std::vector<double> values_{0};
};

int served(const Packing& packing) {
  return static_cast<int>(std::ranges::count_if(packing.node_of, [](const auto& node) { return node.has_value(); }));
}

// The free slices of each node serve its pods, and no GPU has more than its space.
void expect_sound(const PackInput& input, const Packing& packing, const std::string& what) {
  for (std::size_t n = 0; n < input.nodes.size(); ++n) {
    SizeCounts there(input.sizes.size());
    for (std::size_t g = 0; g < input.nodes[n].gpus.size(); ++g) {
      std::int64_t gigabytes = 0;
      for (std::size_t t = 0; t < input.sizes.size(); ++t) {
        ASSERT_GE(packing.nodes[n].free[g][t], 0) << what;
        there[t] += packing.nodes[n].free[g][t];
        gigabytes += packing.nodes[n].free[g][t] * input.sizes[t];
      }
      ASSERT_LE(gigabytes, space_of(input, input.nodes[n].gpus[g])) << what << ": overcommit";
      if (packing.nodes[n].changed()) continue;
      ASSERT_EQ(packing.nodes[n].free[g], input.nodes[n].gpus[g].free) << what;
    }
    for (std::size_t p = 0; p < input.pods.size(); ++p) {
      if (packing.node_of[p] != n) continue;
      for (const std::int64_t gigabytes : input.pods[p].slices)
        --there[static_cast<std::size_t>(std::ranges::lower_bound(input.sizes, gigabytes) - input.sizes.begin())];
    }
    for (const std::int32_t left : there) ASSERT_GE(left, 0) << what << ": a pod of node " << n << " has no slice";
  }
}

// So no other rule serves more of them, that of nos's gpu-partitioner neither.
TEST(PackingQuality, ServesTheOptimumOfSmallInstances) {
  for (const unsigned seed : {19U, 57U}) {
    std::mt19937 random(seed);
    for (int i = 0; i < 150; ++i) {
      const PackInput input = random_input(random, 1 + i % 3, 1 + i % 2, 2 + i % 9);
      const Packing packing = pack(input);
      const std::string what = fmt::format("instance {} of seed {}", i, seed);
      expect_sound(input, packing, what);
      EXPECT_EQ(served(packing), Exact(input).most_pods()) << what;
    }
  }
}

void expect_sound_and_the_same(const PackInput& input, const std::string& what) {
  const Packing packing = pack(input);
  expect_sound(input, packing, what);
  EXPECT_EQ(pack(input).node_of, packing.node_of) << what;
}

TEST(PackingQuality, IsSoundAndTheSameForEqualInput) {
  std::mt19937 random(7);
  for (int i = 0; i < 120; ++i)
    expect_sound_and_the_same(random_input(random, 1 + i % 12, 1 + i % 8, i % 40), fmt::format("instance {}", i));
}

// What a plan leads to gives no reason for another one.
TEST(PackingQuality, ThePlanOverTheResultOfAPlanServesTheSamePodsAndChangesNothing) {
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    PackInput input = random_input(random, 1 + i % 4, 1 + i % 3, 1 + i % 12);
    const Packing first = pack(input);
    for (std::size_t n = 0; n < input.nodes.size(); ++n) {
      for (std::size_t g = 0; g < input.nodes[n].gpus.size(); ++g) {
        input.nodes[n].gpus[g].free = first.nodes[n].free[g];
        input.nodes[n].gpus[g].room = first.nodes[n].rooms[g];
      }
    }
    const Packing second = pack(input);
    EXPECT_EQ(served(second), served(first)) << "instance " << i;
    EXPECT_TRUE(std::ranges::none_of(second.nodes, &NodePacking::changed)) << "instance " << i;
  }
}

// Pods of three priorities and two sizes, each on all nodes or on those with an even number. Every third node only has
// the free slices that it has.
PackInput input_of_several_kinds(std::mt19937& random, int nodes, int pods) {
  const auto any = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  PackInput out = random_input(random, nodes, 2, pods);
  auto& even = out.admissions.emplace_back();
  for (std::size_t n = 0; n < out.nodes.size(); n += 2) even.push_back(n);
  for (std::size_t n = 0; n < out.nodes.size(); n += 3) out.nodes[n].changeable = false;
  for (PackPod& pod : out.pods) pod = {any(0, 2), {any(0, 1) == 0 ? 4 : 10}, static_cast<std::size_t>(any(0, 1))};
  std::ranges::stable_sort(out.pods, {}, [](const PackPod& pod) { return std::pair(-pod.priority, sum(pod.slices)); });
  return out;
}

TEST(PackingQuality, IsSoundAndTheSameForPodsOfSeveralKinds) {
  std::mt19937 random(11);
  for (int i = 0; i < 300; ++i)
    expect_sound_and_the_same(input_of_several_kinds(random, 1 + i % 7, 1 + i % 40), fmt::format("instance {}", i));
}

// Two full GPUs on two nodes have a free slice each.
TEST(PackingQuality, TwoSlicesServeTwoOfThreePodsOfThreePriorities) {
  PackInput input;
  input.sizes = {39};
  for (int n = 0; n < 2; ++n)
    input.nodes.push_back({.gpus = {{0, {1}}}, .taken = {0}, .just_taken = {}, .changeable = true});
  input.admissions = {{0, 1}};
  for (const int priority : {5, 4, 3}) input.pods.push_back({priority, {39}, 0});
  const Packing packing = pack(input);
  EXPECT_TRUE(packing.node_of[0] && packing.node_of[1]);
  EXPECT_NE(packing.node_of[0], packing.node_of[1]);
  EXPECT_FALSE(packing.node_of[2]);
}

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
}  // namespace gso::testing::packing_test
