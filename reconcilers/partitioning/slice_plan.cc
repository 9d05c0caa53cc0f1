#include "reconcilers/partitioning/slice_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "reconcilers/cluster/facts.h"
#include "reconcilers/model/foreign_names.h"

namespace gso {

namespace {

bool is_considered(const SlicePod& pod) {
  if (pod.phase != "Pending" || !pod.node_name.empty() || !pod.unschedulable || !pod.nominated_node.empty())
    return false;
  if (pod.meta.deletion_timestamp || pod.slices.empty()) return false;
  return std::ranges::none_of(pod.meta.owners, [](const k8s::OwnerReference& owner) {
    return owner.kind == "DaemonSet" || owner.kind == "Node";
  });
}

// Of that container, over all sizes.
std::int64_t slices_of(const SlicePod& pod, std::string_view container) {
  std::int64_t out = 0;
  for (const SliceRequest& request : pod.requests) out += request.container == container ? request.count : 0;
  return out;
}

bool is_refused(const SlicePod& pod) {
  return std::ranges::any_of(pod.requests,
                             [&](const SliceRequest& request) { return slices_of(pod, request.container) > 1; });
}

std::int64_t gigabytes_wanted(const SlicePod& pod) {
  return std::accumulate(pod.slices.begin(), pod.slices.end(), std::int64_t{0});
}

}  // namespace

PendingPods pending_pods(const World& world) {
  PendingPods out;
  for (const auto& [key, pod] : world.partitioning.pods.all()) {
    if (is_considered(*pod)) (is_refused(*pod) ? out.refused : out.considered).push_back(pod.get());
  }
  const auto order = [](const SlicePod* pod) {
    return std::tuple(-std::int64_t{pod->priority}, gigabytes_wanted(*pod), pod->slices.size(),
                      pod->meta.creation_timestamp, pod->meta.ns.view(), std::string_view(pod->meta.name));
  };
  std::ranges::sort(out.considered, {}, order);
  std::ranges::sort(out.refused, {}, order);
  return out;
}

std::string describe_refusal(const SlicePod& pod) {
  for (const SliceRequest& request : pod.requests) {
    const std::int64_t count = slices_of(pod, request.container);
    if (count <= 1) continue;
    return fmt::format(
        "container {} asks for {} slices ({}), and nos's device plugin serves a container with one slice at most: ask "
        "for one larger slice",
        request.container, count, slice_resource(request.gigabytes));
  }
  return {};
}

Admission::Admission(const SlicePod& pod)
    : pod_(&pod),
      selector_(pod.node_selector.begin(), pod.node_selector.end()),
      terms_(pod.affinity_terms.begin(), pod.affinity_terms.end()),
      tolerations_(pod.tolerations.begin(), pod.tolerations.end()) {}

bool Admission::follows_rules(const Node& node) const {
  const bool selected = std::ranges::all_of(selector_, [&](const StringMap::Entry& wanted) {
    return node.meta.labels.get(wanted.key.view()) == wanted.value.view();
  });
  if (!selected || !matches_terms(terms_, node)) return false;
  return std::ranges::all_of(node.taints, [&](const Taint& taint) {
    return (taint.effect != "NoSchedule" && taint.effect != "NoExecute") || tolerates(tolerations_, taint);
  });
}

std::string admission_signature(const SlicePod& pod) {
  std::string out = fmt::format("r:{} {} {};", pod.needs.cpu, pod.needs.memory, pod.priority);
  for (const StringMap::Entry& wanted : pod.node_selector)
    out += fmt::format("s:{}={};", wanted.key.view(), wanted.value.view());
  for (const auto& term : pod.affinity_terms) {
    out += "t:";
    for (const NodeSelectorRequirement& requirement : term) {
      out += fmt::format("{} {}", requirement.key.view(), requirement.op.view());
      // The API server takes any text here. With its length in front, no two lists of values give the same.
      for (const Interned& value : requirement.values) out += fmt::format(" {}:{}", value.view().size(), value.view());
      out += ',';
    }
    out += ';';
  }
  for (const Toleration& toleration : pod.tolerations) {
    out += fmt::format("o:{} {} {} {};", toleration.key.view(), toleration.op.view(), toleration.value.view(),
                       toleration.effect.view());
  }
  return out;
}

std::string describe_needs(const PodNeeds& needs) {
  constexpr std::int64_t kMiB = 1 << 20;
  std::string out;
  if (needs.cpu > 0) out = fmt::format("{} CPUs", static_cast<double>(needs.cpu) / 1000);
  if (needs.memory > 0)
    out += fmt::format("{}{} MiB of memory", out.empty() ? "" : " and ", (needs.memory + kMiB - 1) / kMiB);
  return out.empty() ? "a place for one more pod" : out;
}

std::string describe_need(const SlicePod& pod) {
  if (pod.slices.size() == 1) return fmt::format("{} GiB", pod.slices[0]);
  SliceCounts counts;
  add_slices(counts, pod, 1);
  return describe(counts);
}

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
