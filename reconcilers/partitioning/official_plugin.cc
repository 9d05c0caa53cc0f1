#include "reconcilers/partitioning/official_plugin.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/node/node_patch.h"
#include "reconcilers/partitioning/node_slices.h"
#include "reconcilers/reasons/names.h"

namespace gso {

namespace {

// nos names its keys after the node and the second of its plan.
// Source: nebuly-ai/nos at 12e0a72, internal/partitioning/mps/partitioner.go.
bool is_key_of_nos(std::string_view node, std::string_view key) {
  if (!key.starts_with(node) || key.size() < node.size() + 2 || key[node.size()] != '-') return false;
  return std::ranges::all_of(key.substr(node.size() + 1), [](char c) { return c >= '0' && c <= '9'; });
}

void add_release(PlanDraft& draft, PatchNode patch, const std::string& why) {
  const auto label = patch.set.find(std::string(kConfigLabel));
  const std::string what = label != patch.set.end() ? fmt::format("{}={} is restored", kConfigLabel, label->second)
                           : patch.remove.contains(std::string(kConfigLabel))
                               ? fmt::format("{} is removed", kConfigLabel)
                               : fmt::format("{} stays as it is", kConfigLabel);
  const std::string name = patch.name;
  const std::string note = fmt::format("{}: its GPUs are not partitioned any more, and the label {}", why, what);
  draft.add(std::move(patch), kPartitioningReleased, fmt::format("node {}: {}", name, note), false, name);
  draft.event(node_ref(name), false, kPartitioningReleased, "Release", note);
}

}  // namespace

PatchNode restoring_patch(const Node& node) {
  const PartitioningMark mark = mark_of(node);
  const bool labelled = is_partitioned_by_nos(node) && !is_withdrawn(node, mark);
  const bool known = !mark.before.empty() && (labelled || !is_key_of_nos(node.meta.name, mark.before));
  PatchNode patch = patch_of(node);
  const bool names_key_of_operator = !mark.key.empty() && node.meta.labels.get(kConfigLabel) == mark.key;
  if (names_key_of_operator && !known) {
    patch.remove.insert(std::string(kConfigLabel));
  } else if (names_key_of_operator && mark.before != mark.key) {
    patch.set.emplace(kConfigLabel, mark.before);
  }
  if (mark.labelled && node.meta.labels.get(kNosPartitioning) == "mps")
    patch.remove.insert(std::string(kNosPartitioning));
  patch.remove_annotations.insert(std::string(kPartitioningAnnotation));
  return patch;
}

bool has_lost_label(PlanDraft& draft, const std::string& node) {
  return draft.held_for({Timer::leaving, node, std::string(kNosPartitioning)}, std::chrono::minutes(2));
}

void release_left(PlanDraft& draft, const Discovery& discovery, const std::set<std::string>& left) {
  for (const std::string& name : left) {
    const Node* node = draft.s.world.nodes.find(name);
    if (node == nullptr) continue;
    if (const PartitioningMark mark = mark_of(*node); !mark.problem.empty()) {
      draft.finding(Severity::warning, node_ref(name), kPartitioningSkipped, unreadable_mark_text(name, mark.problem));
      continue;
    }
    const PluginInstallation* installation = nos_plugin_of(discovery, *node).installation;
    const std::string_view holder = installation != nullptr ? holder_of(*node, *installation)
                                    : is_held(*node)        ? std::string_view(kHeld)
                                                            : std::string_view();
    if (!holder.empty()) {
      draft.finding(Severity::info, node_ref(name), kHeld,
                    fmt::format("node {} keeps its slices although its label {} was removed: {}", name,
                                kNosPartitioning, describe_holder(holder, *node)));
      continue;
    }
    if (!has_lost_label(draft, name)) continue;
    if (!draft.takes_more()) return;
    add_release(draft, restoring_patch(*node), fmt::format("the label {} was removed", kNosPartitioning));
  }
}

void release_withdrawn(PlanDraft& draft, const std::vector<PartitionedNode>& nodes) {
  for (const PartitionedNode& node : nodes) {
    if (!is_withdrawn(*node.node, node.mark)) continue;
    const bool known = draft.s.world.partitioning.nodes_known.contains(node.name) && node.slices.problem.empty();
    const bool used = std::ranges::any_of(node.pods, [](const SlicePod* pod) { return !pod->slices.empty(); });
    if (!known || used || !node.slices.used().empty()) continue;
    add_release(draft, restoring_patch(*node.node), fmt::format("the label {} was removed", kNosPartitioningBefore));
  }
}

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
