// See tenant_memory.h.
#include "reconcilers/model/tenant_memory.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "reconcilers/model/message_text.h"

namespace gso {
namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;

struct Budget {
  std::size_t base;      // Together at most 24 MiB; the rest of 32 MiB is what the allocator and pages need.
  std::size_t per_node;  // A node of eight GPUs with some pods on each has some 20 KaiPods.
};
// In the order of TenantFed.
constexpr auto kBudgets = std::to_array<Budget>({
    {4 * kMiB, 32 * kKiB},
    {4 * kMiB, 16 * kKiB},
    {6 * kMiB, 128 * kKiB},  // Every pod of a partitioned node, those of DaemonSets included.
    {1 * kMiB, 0},
    {2 * kMiB, 8 * kKiB},
    {2 * kMiB, 0},
    {1 * kMiB, 0},  // Some 600 pods; only nodes that are about to change are listed.
});

// What the pool of texts and the planners' indexes keep beside the text.
constexpr std::size_t kEntry = 160;

std::size_t of(std::string_view text) {
  return text.empty() ? 0 : kEntry + text.size();
}
std::size_t of(const Interned& text) {
  return of(text.view());
}

std::size_t of(const StringMap::Entry& entry) {
  return sizeof(entry) + of(entry.key) + of(entry.value);
}
std::size_t of(const Toleration& toleration) {
  return sizeof(toleration) + of(toleration.key) + of(toleration.value);
}
std::size_t of(const NodeSelectorRequirement& requirement) {
  std::size_t out = sizeof(requirement) + of(requirement.key);
  for (const Interned& value : requirement.values) out += sizeof(value) + of(value);
  return out;
}
std::size_t of(const k8s::OwnerReference& owner) {
  return sizeof(owner) + of(owner.name) + of(owner.uid);
}
std::size_t of(const ContainerStatus& status) {
  return sizeof(status) + of(status.name) + of(status.last_message());
}

template <class List>
std::size_t each_of(const List& list) {
  std::size_t out = 0;
  for (const auto& item : list) out += of(item);
  return out;
}

std::size_t of(const ObjectMeta& meta) {
  return meta.name.size() + kEntry + each_of(meta.labels) + each_of(meta.annotations) + each_of(meta.owners);
}

}  // namespace

std::size_t most_bytes(TenantFed what, std::size_t nodes) {
  const Budget& budget = kBudgets.at(static_cast<std::size_t>(what));
  return budget.base + budget.per_node * nodes;
}

std::size_t memory_of(const KaiPod& pod) {
  return sizeof(pod) + of(pod.meta) + each_of(pod.tolerations) + of(pod.scheduler_name);
}

std::size_t memory_of(const BindRequest& request) {
  return sizeof(request) + of(request.meta) + of(request.pod_name) + of(request.selected_node) +
         request.groups.size() * sizeof(Interned) + each_of(request.groups);
}

std::size_t memory_of(const SlicePod& pod) {
  std::size_t out = sizeof(pod) + of(pod.meta) + each_of(pod.node_selector) + each_of(pod.tolerations) +
                    pod.slices.size() * sizeof(std::int64_t);
  for (const SliceRequest& request : pod.requests) out += sizeof(request) + request.container.size();
  for (const auto& term : pod.affinity_terms) out += sizeof(term) + each_of(term);
  return out;
}

std::size_t memory_of(const Pod& pod) {
  return sizeof(pod) + of(pod.meta) + of(pod.scheduler_name) + each_of(pod.containers) + each_of(pod.init_containers) +
         pod.gpu_requests.size() * sizeof(ResourceCounts::Entry) + each_of(pod.host_paths);
}

std::string left_out_text(const k8s::LeftOut& left_out, std::size_t most_bytes) {
  const std::size_t count = left_out.count();
  if (count == 0) return {};
  return fmt::format(
      "{} {} left out, {} among them: all of them together need more than {} MiB",
      count > k8s::LeftOut::kMostTold ? fmt::format("more than {}", k8s::LeftOut::kMostTold) : fmt::to_string(count),
      count == 1 ? "object is" : "objects are", shown_value(left_out.example()), most_bytes / kMiB);
}

}  // namespace gso
