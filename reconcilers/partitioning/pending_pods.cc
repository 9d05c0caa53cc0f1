#include "reconcilers/partitioning/pending_pods.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string_view>
#include <tuple>

#include "reconcilers/cluster/node_match.h"
#include "reconcilers/model/slice_resource.h"

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

}  // namespace gso
