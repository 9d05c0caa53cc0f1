#include "reconcilers/partitioning/official_plugin.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "reconcilers/partitioning/slice_plan.h"

namespace gso {

namespace {

// The MPS daemon of the official plugin refuses more. Source: cmd/mps-control-daemon/mps/device.go.
constexpr std::int64_t kMostMpsClients = 48;

}  // namespace

std::optional<HomogeneousReplicas> nearest_replicas(const NodeSlices& slices, const std::vector<const SlicePod*>& pods,
                                                    const PartitioningSettings& settings) {
  const std::int64_t capacity = capacity_of_gpu(slices, settings);
  std::int64_t largest = 0;
  for (const SlicePod* pod : pods) {
    for (const std::int64_t gigabytes : pod->slices) {
      if (2 * gigabytes <= capacity) largest = std::max(largest, gigabytes);
    }
  }
  if (largest == 0) return std::nullopt;
  const std::int64_t replicas = std::min(capacity / largest, kMostMpsClients);
  return HomogeneousReplicas{replicas, capacity / replicas, largest};
}

std::string official_alternative(const Discovery& discovery, const PartitionedNode& node,
                                 const std::vector<const SlicePod*>& pods, const PartitioningSettings& settings) {
  const auto serves = [&](const PluginInstallation& installation) {
    return installation.find(Component::plugin, *node.node) != nullptr;
  };
  const auto installation = std::ranges::find_if(discovery.installations, serves);
  if (installation == discovery.installations.end()) return {};
  const Operand* plugin = installation->find(Component::plugin, *node.node);
  std::string out =
      fmt::format(". DaemonSet {} of the official device plugin serves it, which has replicas of one size only",
                  k8s::to_string(plugin->key));
  std::vector<const SlicePod*> admitted;
  std::ranges::copy_if(pods, std::back_inserter(admitted),
                       [&](const SlicePod* pod) { return Admission(*pod).admits(node); });
  if (const auto replicas = nearest_replicas(node.slices, admitted, settings)) {
    out += fmt::format(
        ". The nearest profile for the pods that wait is sharing.mps.resources: [{{name: nvidia.com/gpu, replicas: "
        "{}}}], with {} GiB for each replica; it suits slices of up to {} GiB, whose pods then ask for nvidia.com/gpu",
        replicas->replicas, replicas->gigabytes, replicas->largest_asked);
  }
  return out +
         ". Other ways to slices of different sizes: KAI-Scheduler's memory fractions (NvFractions), or DRA with "
         "consumable capacity; docs/partitioning.md says what each needs";
}

}  // namespace gso
