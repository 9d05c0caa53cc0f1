#include "nos_rule.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace gso::testing {

namespace {

int at(const NosSlices& slices, int size) {
  const auto found = slices.find(size);
  return found == slices.end() ? 0 : found->second;
}

// Removes an entry that has become 0.
void take(NosSlices& slices, int size, int count) {
  if ((slices[size] -= count) <= 0) slices.erase(size);
}

NosSlices total(const NosNode& node) {
  NosSlices out;
  for (const NosGpu& gpu : node)
    for (const auto& [size, count] : gpu.free) out[size] += count;
  return out;
}

void create(NosGpu& gpu, int size, int& missing) {
  while (missing > 0 && gpu.spare >= size) {
    gpu.spare -= size;
    ++gpu.free[size];
    --missing;
  }
}

// Missing sizes one after the other, the smallest first: from spare memory, then in place of all slices that were free
// at the beginning, which return afterwards as far as all of one size fit. A size that grew goes with them.
bool update(NosGpu& gpu, const NosSlices& required) {
  NosSlices missing;
  for (const auto& [size, count] : required)
    if (count > at(gpu.free, size)) missing[size] = count - at(gpu.free, size);
  const NosSlices original = gpu.free;
  bool updated = false;
  for (auto& [size, count] : missing) {
    const int before = count;
    create(gpu, size, count);
    for (const auto& [free_size, free_count] : original) {
      gpu.spare += free_size * at(gpu.free, free_size);
      gpu.free.erase(free_size);
    }
    create(gpu, size, count);
    for (const auto& [free_size, free_count] : original) {
      if (gpu.spare < free_size * free_count) continue;
      gpu.spare -= free_size * free_count;
      gpu.free[free_size] += free_count;
    }
    updated = updated || count < before;
  }
  return updated;
}

void update(NosNode& node, NosSlices required) {
  for (NosGpu& gpu : node) {
    update(gpu, required);
    for (const auto& [size, count] : gpu.free) take(required, size, count);
  }
}

// Whether all slices of the pod are on one GPU; they are taken then.
bool add(NosNode& node, const NosPod& pod) {
  for (NosGpu& gpu : node) {
    const bool fits = std::ranges::all_of(
        pod.slices, [&](const auto& wanted) { return at(gpu.free, wanted.first) >= wanted.second; });
    if (!fits) continue;
    for (const auto& [size, count] : pod.slices) take(gpu.free, size, count);
    return true;
  }
  return false;
}

// What the pod lacks, as if free slices anywhere served it.
NosSlices lacking(const std::vector<NosNode>& nodes, const NosPod& pod) {
  NosSlices free;
  for (const NosNode& node : nodes)
    for (const auto& [size, count] : total(node)) free[size] += count;
  NosSlices out;
  for (const auto& [size, count] : pod.slices)
    if (count > at(free, size)) out[size] = count - at(free, size);
  return out;
}

std::vector<std::size_t> sorted(const std::vector<NosPod>& pods) {
  std::vector<std::size_t> out(pods.size());
  std::iota(out.begin(), out.end(), std::size_t{0});
  std::ranges::stable_sort(out, {}, [&](std::size_t p) {
    return std::pair(-pods[p].priority, pods[p].slices.empty() ? 0 : pods[p].slices.begin()->first);
  });
  return out;
}

bool has_capacity(const NosNode& node) {
  return std::ranges::any_of(node, [](const NosGpu& gpu) { return !gpu.free.empty() || gpu.spare >= 1; });
}

}  // namespace

std::vector<NosNode> nos_plan(std::vector<NosNode> nodes, const std::vector<NosPod>& pods) {
  std::vector<NosNode> desired = nodes;
  NosSlices lacks;
  std::vector<NosSlices> lacks_of;
  for (const NosPod& pod : pods) {
    lacks_of.push_back(lacking(nodes, pod));
    for (const auto& [size, count] : lacks_of.back()) lacks[size] += count;
  }
  for (std::size_t n = 0; n < nodes.size() && !lacks.empty(); ++n) {
    if (!has_capacity(nodes[n])) continue;
    const std::vector<NosNode> before = nodes;
    update(nodes[n], lacks);
    const NosNode geometry = nodes[n];
    bool added = false;
    for (const std::size_t p : sorted(pods)) {
      if (!lacking(nodes, pods[p]).empty() || !add(nodes[n], pods[p])) continue;
      added = true;
      for (const auto& [size, count] : std::exchange(lacks_of[p], {})) take(lacks, size, count);
    }
    if (added) {
      desired[n] = geometry;
    } else {
      nodes = before;
      nodes[n] = geometry;  // It is edited in place, which a "revert" does not undo.
    }
  }
  return desired;
}

int most_served(const std::vector<NosNode>& nodes, const std::vector<NosPod>& pods) {
  std::vector<NosSlices> free;
  for (const NosNode& node : nodes) free.push_back(total(node));
  int best = 0;
  const auto search = [&](const auto& self, std::size_t p, int served) -> void {
    best = std::max(best, served);
    if (p == pods.size() || served + static_cast<int>(pods.size() - p) <= best) return;
    for (NosSlices& there : free) {
      const bool fits = std::ranges::all_of(
          pods[p].slices, [&](const auto& wanted) { return at(there, wanted.first) >= wanted.second; });
      if (!fits) continue;
      const NosSlices before = there;
      for (const auto& [size, count] : pods[p].slices) take(there, size, count);
      self(self, p + 1, served + 1);
      there = before;
    }
    self(self, p + 1, served);
  };
  search(search, 0, 0);
  return best;
}

}  // namespace gso::testing
