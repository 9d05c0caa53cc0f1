// Which scopes, their sinks, and what is missing.
#include "controller/watches/kai_watches.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "reconcilers/cluster/kai_view.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/resources.h"
#include "reconcilers/model/tenant_memory.h"

namespace gso {

namespace {

// Of KAI, those that are always watched.
const std::array kKaiKinds{resources::kai_configs, resources::bind_requests};

std::string gap_of(const std::string& name, const ScopedWatch& watch, bool is_there) {
  if (!is_there) return name + " have not synced";
  if (!watch.current()) return fmt::format("the watch of {} has failed and is being opened again", name);
  const std::string left_out = watch.left_out();
  return left_out.empty() ? left_out : fmt::format("{}: {}", name, left_out);
}

}  // namespace

std::string to_string(const KaiScope& scope) {
  switch (scope.kind) {
    case KaiScope::Kind::grouped_pods:
      return fmt::format("pods ({})", kai::kGroupLabel);
    case KaiScope::Kind::reservations:
      return fmt::format("pods of {} ({}={})", scope.ns, kai::kAppLabel, scope.value);
    case KaiScope::Kind::binder:
      return fmt::format("deployments of {} ({})", scope.ns, scope.value);
    case KaiScope::Kind::runtime_classes:
      return "runtimeclasses";
    case KaiScope::Kind::schema:
      return fmt::format("customresourcedefinitions ({})", scope.value);
  }
  return {};
}

KaiWatches::KaiWatches(WatchResources resources, WatchReports reports)
    : WatchFamily(std::move(resources), std::move(reports)),
      pod_budget_(&world_->kai.pods, &memory_of, most_bytes(TenantFed::kai_pods)) {
  world_->kai.pods.mark_synced();
  world_->kai.deployments.mark_synced();
  world_->kai.schemas.mark_synced();
  world_->kai.use_known = false;
  world_->kai.incomplete = "KAI's APIs have not been checked yet";
}

void KaiWatches::note_complete(const KaiScope& scope) {
  if (scope.kind == KaiScope::Kind::runtime_classes) world_->kai.runtime_classes.mark_synced();
  WatchFamily::note_complete(scope);
}

k8s::Gvr KaiWatches::prepare(const KaiScope& scope, ScopedWatch& watch, k8s::WatcherOptions& options) {
  KaiWorld& kai = world_->kai;
  options.ns = scope.ns;
  switch (scope.kind) {
    case KaiScope::Kind::grouped_pods:
      options.label_selector.match_expressions.push_back(
          {std::string(kai::kGroupLabel), k8s::LabelOperator::exists, {}});
      watch.fill(&kai.pods, &pod_counts_, &project_kai_pod, nullptr, &pod_budget_);
      return resources::pods;
    case KaiScope::Kind::reservations:
      options.label_selector.match_labels[std::string(kai::kAppLabel)] = scope.value;
      watch.fill(&kai.pods, &pod_counts_, &project_kai_pod, nullptr, &pod_budget_);
      return resources::pods;
    case KaiScope::Kind::binder:
      options.field_selector = k8s::FieldSelector::equals("metadata.name", scope.value);
      watch.fill(&kai.deployments, &deployment_counts_, &project_deployment);
      return resources::deployments;
    case KaiScope::Kind::runtime_classes:
      watch.fill(&kai.runtime_classes, &class_counts_, &project_runtime_class);
      return resources::runtime_classes;
    case KaiScope::Kind::schema:
      options.field_selector = k8s::FieldSelector::equals("metadata.name", scope.value);
      watch.fill(&kai.schemas, &schema_counts_, &project_kai_schema);
      return resources::custom_resource_definitions;
  }
  return {};
}

std::vector<KaiScope> KaiWatches::wanted(const KaiSettings& settings) const {
  using Kind = KaiScope::Kind;
  const KaiWorld& kai = world_->kai;
  const KaiView view = view_kai(kai, settings);
  const bool leftovers = settings.look_for_leftovers && settings.gc_mode != KaiGcMode::off;
  if (!view.served && !leftovers) return {};
  std::vector<KaiScope> out{{Kind::reservations, view.reservations, view.app_label}};
  if (view.served || kai.pods.size() > 0) out.push_back({Kind::grouped_pods, "", ""});
  if (view.served) {
    out.push_back({Kind::runtime_classes, "", ""});
    out.push_back({Kind::schema, "", std::string(kai::kConfigCrd)});
    out.push_back({Kind::schema, "", std::string(kai::kBindRequestCrd)});
  }
  if (view.configured) out.push_back({Kind::binder, view.ns, std::string(kai::kBinder)});
  return out;
}

// What the collection needs and does not have; empty when the view is complete.
std::string KaiWatches::find_gap(const ClusterWatches& cluster) const {
  for (const k8s::Gvr& gvr : kKaiKinds) {
    const ScopedWatch& watch = *cluster.find(gvr);
    const std::string gap = gap_of(gvr.resource, watch, watch.readable());
    if (!gap.empty()) return gap;
  }
  for (const auto& [scope, watch] : watches()) {
    if (scope.kind == KaiScope::Kind::runtime_classes) continue;  // Nothing is deleted on their account.
    if (watch->refusal() && !watch->synced())
      return fmt::format("{} cannot be watched: {}", to_string(scope), watch->refusal()->message);
    const std::string gap = gap_of(to_string(scope), *watch, watch->synced());
    if (!gap.empty()) return gap;
  }
  return has_retired() ? "the set of KAI watches has just changed" : std::string();
}

void KaiWatches::update(ClusterWatches& cluster, const KaiSettings& settings) {
  KaiWorld& kai = world_->kai;
  pod_budget_.set_most(most_bytes(TenantFed::kai_pods, world_->nodes.size()));
  cluster.use_room();
  use_room();
  kai.configs_served = cluster.served(resources::kai_configs);
  kai.bind_requests_served = cluster.served(resources::bind_requests);
  keep_open(wanted(settings));
  release_retired();
  const auto schemas = std::ranges::count_if(watches(), [](const auto& entry) {
    return entry.first.kind == KaiScope::Kind::schema && entry.second->synced();
  });
  kai.schemas_known = schemas == 2;
  // A failed watch can be outdated by any time: pods that it does not show can still be on a node. Pods that had no
  // room and run nowhere use no node; only the collection of reservations waits for them (find_gap()).
  const bool pods_known = std::ranges::all_of(watches(), [](const auto& entry) {
    const bool pods =
        entry.first.kind == KaiScope::Kind::grouped_pods || entry.first.kind == KaiScope::Kind::reservations;
    return !pods || (entry.second->current() && entry.second->knows_placed());
  });
  const bool apis_known =
      std::ranges::all_of(kKaiKinds, [&](const k8s::Gvr& gvr) { return cluster.find(gvr)->is_whole(); });
  kai.use_known = apis_known && pods_known;
  kai.incomplete = find_gap(cluster);
}

}  // namespace gso
