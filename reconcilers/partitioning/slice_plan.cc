#include "reconcilers/partitioning/slice_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace gso {

namespace {

const SliceCounts kNone;

const SliceCounts& slices_on(const Geometry& geometry, std::size_t gpu) {
  const auto at = geometry.find(static_cast<std::int64_t>(gpu));
  return at == geometry.end() ? kNone : at->second;
}

std::size_t index_of(const std::vector<std::int64_t>& sizes, std::int64_t gigabytes) {
  return static_cast<std::size_t>(std::ranges::lower_bound(sizes, gigabytes) - sizes.begin());
}

// Slices that the GPU carries and that are not used.
SliceCounts free_on(const PartitionedNode& node, const NodeStanding& standing, std::size_t gpu) {
  SliceCounts out = slices_on(standing.carries, gpu);
  for (const auto& [gigabytes, count] : node.slices.gpus[gpu].used) add_slices(out, gigabytes, -count);
  return out;
}

PackInput input_of(const std::vector<PartitionedNode>& nodes, const std::vector<NodeStanding>& standings,
                   const std::vector<const SlicePod*>& pods, const RefusedPlaces& refused,
                   const PartitioningSettings& settings) {
  PackInput out;
  std::set<std::int64_t> sizes;
  for (const SlicePod* pod : pods) sizes.insert(pod->slices.begin(), pod->slices.end());
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    for (std::size_t g = 0; g < nodes[n].slices.gpus.size(); ++g) {
      for (const auto& [gigabytes, count] : free_on(nodes[n], standings[n], g)) sizes.insert(gigabytes);
    }
  }
  out.sizes.assign(sizes.begin(), sizes.end());
  out.prefer_busy = settings.consolidate;
  for (std::size_t n = 0; n < nodes.size(); ++n)
    out.nodes.push_back(pack_node_of(nodes[n], standings[n], out.sizes, settings));
  std::map<std::pair<std::string, std::vector<std::size_t>>, std::size_t> admissions;
  // Pods that ask for different CPUs are alike where the same nodes admit them: the packing remembers answers by kind.
  std::map<std::vector<std::size_t>, std::size_t> lists;
  for (std::size_t p = 0; p < pods.size(); ++p) {
    const SlicePod& pod = *pods[p];
    const auto [at, is_new] = admissions.try_emplace({admission_signature(pod), refused[p]}, 0);
    if (is_new) {
      std::vector<std::size_t> admitted;
      const Admission admission(pod);
      for (std::size_t n = 0; n < nodes.size(); ++n) {
        const bool is_refused = std::ranges::binary_search(refused[p], n);
        if (standings[n].serves && !is_refused && admission.admits(nodes[n])) admitted.push_back(n);
      }
      at->second = lists.try_emplace(std::move(admitted), lists.size()).first->second;
    }
    out.pods.push_back({pod.priority, {pod.slices.begin(), pod.slices.end()}, at->second});
  }
  out.admissions.resize(lists.size());
  for (auto& [admitted, index] : lists) out.admissions[index] = admitted;
  return out;
}

}  // namespace

std::int64_t capacity_of_gpu(const NodeSlices& slices, const PartitioningSettings& settings) {
  constexpr std::int64_t kMiBPerGiB = 1024;
  return std::max<std::int64_t>(slices.memory_mib - settings.reserved_mib, 0) / kMiBPerGiB;
}

PackNode pack_node_of(const PartitionedNode& node, const NodeStanding& standing, const std::vector<std::int64_t>& sizes,
                      const PartitioningSettings& settings) {
  PackNode out;
  const std::int64_t capacity = capacity_of_gpu(node.slices, settings);
  for (std::size_t g = 0; g < node.slices.gpus.size(); ++g) {
    PackGpu& gpu = out.gpus.emplace_back();
    const SliceCounts free = free_on(node, standing, g);
    gpu.room = capacity - gigabytes_of(node.slices.gpus[g].used) - gigabytes_of(free);
    gpu.free.resize(sizes.size());
    for (const auto& [gigabytes, count] : free) {
      const std::size_t at = index_of(sizes, gigabytes);
      if (at < sizes.size() && sizes[at] == gigabytes) gpu.free[at] = static_cast<std::int32_t>(count);
    }
    out.busy = out.busy || !node.slices.gpus[g].used.empty();
  }
  out.taken.resize(sizes.size());
  out.just_taken.resize(sizes.size());
  const SliceCounts taken = node.taken();
  for (const auto& [counts, into] : {std::pair(&taken, &out.taken), {&node.just_bound, &out.just_taken}}) {
    for (const auto& [gigabytes, count] : *counts) {
      const std::size_t at = index_of(sizes, gigabytes);
      if (at < sizes.size() && sizes[at] == gigabytes) (*into)[at] = static_cast<std::int32_t>(count);
    }
  }
  out.changeable = standing.changeable;
  return out;
}

bool fits_when_empty(const NodeSlices& slices, const SlicePod& pod, const PartitioningSettings& settings) {
  const std::set<std::int64_t> distinct(pod.slices.begin(), pod.slices.end());
  const std::vector<std::int64_t> sizes(distinct.begin(), distinct.end());
  PackNode node;
  node.changeable = true;
  node.taken.resize(sizes.size());
  for (std::size_t g = 0; g < slices.gpus.size(); ++g)
    node.gpus.push_back({capacity_of_gpu(slices, settings), SizeCounts(sizes.size())});
  SizeCounts demand(sizes.size());
  for (const std::int64_t gigabytes : pod.slices) ++demand[index_of(sizes, gigabytes)];
  return pack_node(sizes, node, demand).has_value();
}

SlicePlan plan_slices(const std::vector<PartitionedNode>& nodes, const std::vector<NodeStanding>& standings,
                      const std::vector<const SlicePod*>& pods, const RefusedPlaces& refused,
                      const PartitioningSettings& settings, PlanningCache& cache) {
  const PackInput input = input_of(nodes, standings, pods, refused, settings);
  Packing packing = cache.packing(input);
  SlicePlan out;
  out.sizes = input.sizes;
  out.node_of = packing.node_of;
  out.packing = std::move(packing.nodes);
  out.demand.assign(nodes.size(), SizeCounts(out.sizes.size()));
  for (std::size_t p = 0; p < pods.size(); ++p) {
    if (!out.node_of[p]) continue;
    for (const std::int64_t gigabytes : pods[p]->slices) ++out.demand[*out.node_of[p]][index_of(out.sizes, gigabytes)];
  }
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    out.changes.push_back(out.packing[n].changed());
    Geometry& geometry = out.geometry.emplace_back(standings[n].carries);
    if (!out.changes[n]) continue;
    geometry = nodes[n].slices.used();
    for (std::size_t g = 0; g < nodes[n].slices.gpus.size(); ++g) {
      for (std::size_t t = 0; t < out.sizes.size(); ++t) {
        if (out.packing[n].free[g][t] > 0)
          add_slices(geometry[static_cast<std::int64_t>(g)], out.sizes[t], out.packing[n].free[g][t]);
      }
    }
  }
  return out;
}

SliceCounts idle_slices(const PartitionedNode& node, const SlicePlan& plan, std::size_t index) {
  SliceCounts out;
  const SliceCounts taken = node.taken();
  for (std::size_t t = 0; t < plan.sizes.size(); ++t) {
    std::int64_t free = -plan.demand[index][t];
    for (const SizeCounts& gpu : plan.packing[index].free) free += gpu[t];
    free -= count_of(taken, plan.sizes[t]);
    if (free > 0) out[plan.sizes[t]] = free;
  }
  return out;
}

Geometry without_idle(const PartitionedNode& node, const Geometry& geometry, SliceCounts idle) {
  Geometry out = geometry;
  for (auto gpu = out.rbegin(); gpu != out.rend(); ++gpu) {
    const GpuSlices& there = node.slices.gpus.at(static_cast<std::size_t>(gpu->first));
    for (auto& [gigabytes, count] : idle) {
      const auto free = there.free.find(gigabytes);
      if (free == there.free.end()) continue;
      const std::int64_t removable = free->second - node.bound_slices(gigabytes);
      const std::int64_t removed = std::clamp<std::int64_t>(removable, 0, count);
      add_slices(gpu->second, gigabytes, -removed);
      count -= removed;
    }
  }
  std::erase_if(out, [](const auto& gpu) { return gpu.second.empty(); });
  return out;
}

}  // namespace gso
