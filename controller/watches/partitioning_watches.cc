// Which scopes, their sinks, and what is missing.
#include "controller/watches/partitioning_watches.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/model/project.h"
#include "reconcilers/model/resources.h"
#include "reconcilers/model/tenant_memory.h"

namespace gso {
namespace {

using Kind = PartitioningScope::Kind;

// A pod without a node that asks for no resource of nvidia.com changes no plan. One on a labelled node uses its CPUs.
bool asks_for_gpus(std::string_view json) {
  return json.find("nvidia.com/") != std::string_view::npos;
}

}  // namespace

std::string to_string(const PartitioningScope& scope) {
  switch (scope.kind) {
    case Kind::pending_pods:
      return "pods without a node";
    case Kind::leases:
      return fmt::format("leases ({})", kPartitionerLease);
    case Kind::pods_of_node:
      return fmt::format("pods of node {}", scope.node);
  }
  return {};
}

PartitioningWatches::PartitioningWatches(WatchResources resources, WatchReports reports)
    : WatchFamily(std::move(resources), std::move(reports)),
      pod_budget_(&world_->partitioning.pods, &memory_of, most_bytes(TenantFed::slice_pods)) {
  world_->partitioning.pods.mark_synced();
  world_->partitioning.leases.mark_synced();
  world_->nodes.add_listener([this](const k8s::ObjectKey& key, const auto&, const auto& after) {
    const bool is_labelled = after != nullptr && is_partitioned_by_nos(*after);
    const bool changed = is_labelled ? labelled_.insert(key.name).second : labelled_.erase(key.name) > 0;
    outdated_ = outdated_ || changed;
  });
}

k8s::Gvr PartitioningWatches::prepare(const PartitioningScope& scope, ScopedWatch& watch,
                                      k8s::WatcherOptions& options) {
  PartitioningWorld& partitioning = world_->partitioning;
  if (scope.kind == Kind::leases) {
    options.field_selector = k8s::FieldSelector::equals("metadata.name", std::string(kPartitionerLease));
    watch.fill(&partitioning.leases, &lease_counts_, &project_lease);
    return resources::leases;
  }
  const bool pending = scope.kind == Kind::pending_pods;
  options.field_selector = k8s::FieldSelector::equals("spec.nodeName", scope.node);  // That of pending pods is empty.
  if (pending) options.field_selector.terms.push_back({"status.phase", "Pending"});
  watch.fill(&partitioning.pods, &pod_counts_, &project_slice_pod, pending ? &asks_for_gpus : nullptr, &pod_budget_);
  return resources::pods;
}

std::vector<PartitioningScope> PartitioningWatches::wanted(PartitioningMode mode) const {
  if (mode == PartitioningMode::off || labelled_.empty()) return {};
  std::vector<PartitioningScope> out{{Kind::pending_pods, ""}, {Kind::leases, ""}};
  for (const std::string& node : labelled_) out.push_back({Kind::pods_of_node, node});
  return out;
}

// Why nothing can be planned, where a person must act; empty: nothing is missing, or only for a moment.
std::string PartitioningWatches::find_gap() const {
  for (const auto& [scope, watch] : watches()) {
    if (scope.kind != Kind::pods_of_node && watch->refusal())
      return fmt::format("{} cannot be watched: {}", to_string(scope), watch->refusal()->message);
    if (const std::string text = watch->left_out(); !text.empty()) return fmt::format("{}: {}", to_string(scope), text);
  }
  return {};
}

void PartitioningWatches::update(PartitioningMode mode) {
  if (std::exchange(outdated_, false) || std::exchange(mode_, mode) != mode) keep_open(wanted(mode));
  release_retired();
  PartitioningWorld& partitioning = world_->partitioning;
  pod_budget_.set_most(most_bytes(TenantFed::slice_pods, labelled_.size()));
  use_room();
  // Without a labelled node there is nothing to know.
  partitioning.pending_known = partitioning.leases_known = true;
  partitioning.nodes_known.clear();
  for (const auto& [scope, watch] : watches()) {
    const bool known = watch->is_whole();
    if (scope.kind == Kind::pods_of_node && known) partitioning.nodes_known.insert(scope.node);
    if (scope.kind == Kind::pending_pods) partitioning.pending_known = known;
    if (scope.kind == Kind::leases) partitioning.leases_known = known;
  }
  partitioning.incomplete = find_gap();
}

}  // namespace gso
