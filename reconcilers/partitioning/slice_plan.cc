#include "reconcilers/partitioning/slice_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

#include "reconcilers/cluster/facts.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/reasons/names.h"

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

std::int64_t gigabytes_wanted(const SlicePod& pod) {
  return std::accumulate(pod.slices.begin(), pod.slices.end(), std::int64_t{0});
}

}  // namespace

PendingPods pending_pods(const World& world, std::int64_t mps_user) {
  PendingPods out;
  for (const auto& [key, pod] : world.partitioning.pods.all()) {
    if (!is_considered(*pod)) continue;
    const bool refused = !describe_refusal(*pod, mps_user).empty();
    (refused ? out.refused : pod->lacks_no_slice ? out.lack_no_slice : out.considered).push_back(pod.get());
  }
  const auto order = [](const SlicePod* pod) {
    return std::tuple(-std::int64_t{pod->priority}, gigabytes_wanted(*pod), pod->slices.size(),
                      pod->meta.creation_timestamp, pod->meta.ns.view(), std::string_view(pod->meta.name));
  };
  std::ranges::sort(out.considered, {}, order);
  std::ranges::sort(out.refused, {}, order);
  std::ranges::sort(out.lack_no_slice, {}, order);
  return out;
}

std::vector<Reason> slice_faults(const SlicePod& pod, std::string_view container, std::int64_t mps_user) {
  std::int64_t slices = 0;
  const SliceRequest* request = nullptr;
  std::string resources;
  for (const SliceRequest& each : pod.requests) {
    if (each.container != container || each.count < 1) continue;
    slices += each.count;
    resources += (resources.empty() ? "" : " and ") + slice_resource(each.gigabytes);
    if (request == nullptr) request = &each;
  }
  std::vector<Reason> out;
  if (request == nullptr) return out;
  const std::string who = fmt::format("container {} ", shown_value(container));
  const std::string resource = slice_resource(request->gigabytes);
  if (slices > 1) {
    out.push_back({kSeveralSlices, fmt::format("{}asks for {} slices ({}), and nos's device plugin serves a container "
                                               "with one slice at most: ask for one larger slice",
                                               who, slices, resources)});
  }
  if (pod.own_ipc) {
    out.push_back({kSliceWithoutHostIPC, fmt::format("{}asks for {}, which the MPS daemon of nos serves, and reaches "
                                                     "that daemon only with hostIPC: true in the pod's spec",
                                                     who, resource)});
  }
  if (request->user != kUserOfImage && request->user != mps_user) {
    out.push_back(
        {kSliceOfAnotherUser,
         fmt::format("{}runs as user {}, and the MPS daemon of nos serves only clients of its own user, {}: "
                     "set runAsUser to that; if mps.userID of nos's chart is another user, set podMutation.nosUser "
                     "of the operator's chart to it (for commands: --mps-user)",
                     who, request->user, mps_user)});
  }
  return out;
}

std::string describe_refusal(const SlicePod& pod, std::int64_t mps_user) {
  for (const SliceRequest& request : pod.requests) {
    std::string out;
    for (const Reason& fault : slice_faults(pod, request.container, mps_user))
      out += (out.empty() ? "" : "; ") + fault.message;
    if (!out.empty()) return out;
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

namespace {

// Slices that the GPU carries and that are not used.
SliceCounts free_on(const PartitionedNode& node, const Geometry& carries, std::size_t gpu) {
  SliceCounts out = slices_on(carries, gpu);
  add_slices(out, node.slices.gpus[gpu].used, -1);
  return out;
}

// The counts of these sizes; other slices are left out.
SizeCounts counts_of(const std::vector<std::int64_t>& sizes, const SliceCounts& slices) {
  SizeCounts out;
  for (const std::int64_t size : sizes) out.push_back(static_cast<std::int32_t>(count_of(slices, size)));
  return out;
}

const Geometry& carried_by(const std::vector<PartitionedNode>& nodes, std::size_t n, const PendingKeys& pending) {
  const auto key = pending.find(n);
  return key == pending.end() ? nodes[n].standing.carries : key->second;
}

PackInput input_of(const std::vector<PartitionedNode>& nodes, const std::vector<PodToPlace>& pods,
                   const PendingKeys& pending, const PartitioningSettings& settings) {
  PackInput out;
  std::set<std::int64_t> sizes;
  for (const PodToPlace& each : pods) sizes.insert(each.pod->slices.begin(), each.pod->slices.end());
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    for (std::size_t g = 0; g < nodes[n].slices.gpus.size(); ++g)
      for (const auto& [gigabytes, count] : free_on(nodes[n], carried_by(nodes, n, pending), g))
        sizes.insert(gigabytes);
  }
  out.sizes.assign(sizes.begin(), sizes.end());
  out.prefer_busy = settings.consolidate;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const bool changeable = nodes[n].standing.changeable && !pending.contains(n);
    out.nodes.push_back(pack_node_of(nodes[n], carried_by(nodes, n, pending), changeable, out.sizes, settings));
  }
  using Nodes = std::set<std::size_t>;
  std::map<std::tuple<std::string, Nodes, Nodes>, std::size_t> admissions;
  // Pods that ask for different CPUs are alike where the same nodes admit them: the packing remembers answers by kind.
  std::map<std::vector<std::size_t>, std::size_t> lists;
  for (const PodToPlace& each : pods) {
    const SlicePod* pod = each.pod;
    const auto [at, is_new] = admissions.try_emplace(
        {admission_signature(*pod), each.refused_by, each.is_limited() ? each.cut_for : Nodes()}, 0);
    if (is_new) {
      std::vector<std::size_t> admitted;
      const Admission admission(*pod);
      for (std::size_t n = 0; n < nodes.size(); ++n)
        if (nodes[n].standing.serves && each.can_be_on(n) && admission.admits(nodes[n])) admitted.push_back(n);
      at->second = lists.try_emplace(std::move(admitted), lists.size()).first->second;
    }
    out.pods.push_back({pod->priority, {pod->slices.begin(), pod->slices.end()}, at->second});
  }
  out.admissions.resize(lists.size());
  for (auto& [admitted, index] : lists) out.admissions[index] = admitted;
  return out;
}

}  // namespace

std::int64_t capacity_of_gpu(const GpuSlices& gpu, const PartitioningSettings& settings) {
  return std::max<std::int64_t>(gpu.memory_mib - settings.reserved_mib, 0) / kMiBPerGiB;
}

PackNode pack_node_of(const PartitionedNode& node, const Geometry& carries, bool changeable,
                      const std::vector<std::int64_t>& sizes, const PartitioningSettings& settings) {
  PackNode out;
  for (std::size_t g = 0; g < node.slices.gpus.size(); ++g) {
    const SliceCounts& used = node.slices.gpus[g].used;
    const SliceCounts free = free_on(node, carries, g);
    out.gpus.push_back({capacity_of_gpu(node.slices.gpus[g], settings) - gigabytes_of(used) - gigabytes_of(free),
                        counts_of(sizes, free)});
    out.busy = out.busy || !used.empty();
  }
  out.taken = counts_of(sizes, node.taken());
  out.just_taken = counts_of(sizes, node.just_bound);
  out.changeable = changeable;
  return out;
}

bool fits_when_empty(const NodeSlices& slices, const SlicePod& pod, const PartitioningSettings& settings) {
  const std::vector<std::int64_t> pod_slices(pod.slices.begin(), pod.slices.end());
  const std::set<std::int64_t> distinct(pod_slices.begin(), pod_slices.end());
  const std::vector<std::int64_t> sizes(distinct.begin(), distinct.end());
  PackNode node;
  node.changeable = true;
  node.taken.resize(sizes.size());
  for (const GpuSlices& gpu : slices.gpus)
    node.gpus.push_back({capacity_of_gpu(gpu, settings), SizeCounts(sizes.size())});
  return pack_node(sizes, node, counts_of(sizes, pod_slices)).has_value();
}

SlicePlan plan_slices(const std::vector<PartitionedNode>& nodes, const std::vector<PodToPlace>& pods,
                      const PendingKeys& pending, const PartitioningSettings& settings, PlanningCache& cache) {
  const PackInput input = input_of(nodes, pods, pending, settings);
  Packing packing = cache.packing(input);
  SlicePlan out;
  out.sizes = input.sizes;
  out.node_of = packing.node_of;
  out.compared = packing.compared;
  out.planned = packing.planned;
  out.packing = std::move(packing.nodes);
  out.demand.assign(nodes.size(), SizeCounts(out.sizes.size()));
  for (std::size_t p = 0; p < pods.size(); ++p) {
    if (!out.node_of[p]) continue;
    const SizeCounts wanted = counts_of(out.sizes, input.pods[p].slices);
    SizeCounts& demand = out.demand[*out.node_of[p]];
    for (std::size_t t = 0; t < wanted.size(); ++t) demand[t] += wanted[t];
  }
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    Geometry& geometry = out.geometry.emplace_back(carried_by(nodes, n, pending));
    if (!out.packing[n].changed()) continue;
    geometry = nodes[n].slices.used();
    for (std::size_t g = 0; g < nodes[n].slices.gpus.size(); ++g) {
      for (std::size_t t = 0; t < out.sizes.size(); ++t)
        if (out.packing[n].free[g][t] > 0)
          add_slices(geometry[static_cast<std::int64_t>(g)], out.sizes[t], out.packing[n].free[g][t]);
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
