#include "reconcilers/cluster/operand_namespaces.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reconcilers/cluster/cluster_pods.h"
#include "reconcilers/cluster/kai_view.h"
#include "reconcilers/cluster/operand.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/model/project.h"

namespace gso {

// A namespace that has two owners is the first one's.
ProtectedNamespaces::ProtectedNamespaces(const World& world, const PlannerSettings& settings) {
  owners_.emplace("kube-system", "the cluster");
  owners_.emplace(settings.operator_namespace, "the operator");
  for (const auto& [key, daemonset] : world.daemonsets.all()) {
    if (runs_operand(*daemonset)) owners_.emplace(daemonset->meta.ns.view(), "the device plugin");
  }
  const KaiView kai = view_kai(world.kai, settings.kai);
  if (!kai.served) return;
  owners_.emplace(kai.ns, "KAI");
  owners_.emplace(kai.reservations, "KAI");
}

std::string_view ProtectedNamespaces::owner_of(std::string_view ns) const {
  const auto at = owners_.find(ns);
  return at == owners_.end() ? std::string_view() : at->second;
}

namespace {

// What a finding says of it: texts of strangers take no memory.
DaemonSet without_template(const DaemonSet& daemonset) {
  DaemonSet out;
  out.meta.ns = daemonset.meta.ns;
  out.meta.name = daemonset.meta.name;
  out.meta.uid = daemonset.meta.uid;
  out.meta.resource_version = daemonset.meta.resource_version;
  const auto named = std::ranges::find_if(daemonset.containers, is_operand_container, &ContainerSpec::name);
  if (named != daemonset.containers.end()) out.containers.emplace_back().name = named->name;
  return out;
}

}  // namespace

k8s::Result<DaemonSet> project_operand_daemonset(std::string_view json) {
  k8s::Result<DaemonSet> daemonset = project_daemonset(json);
  if (!daemonset || runs_operand(*daemonset)) return daemonset;
  return without_template(*daemonset);
}

bool is_of_cluster_policy(const DaemonSet& daemonset, const World& world) {
  const auto* owner = daemonset.meta.controller();
  if (owner == nullptr || owner->kind != "ClusterPolicy") return false;
  const ClusterPolicy* policy = world.clusterpolicies.find(owner->name.view());
  if (policy == nullptr || policy->meta.deletion_timestamp) return false;
  return owner->uid.view().empty() || policy->meta.uid == owner->uid.view();
}

void SeenDaemonSets::add(const DaemonSet& daemonset, const World& world) {
  if (daemonset.meta.deletion_timestamp || !runs_operand(daemonset)) return;
  namespaces.emplace(daemonset.meta.ns.view());
  if (is_of_cluster_policy(daemonset, world)) of_cluster_policies.emplace(daemonset.meta.ns.view());
  if (kept.size() < kMost) {
    kept.push_back(without_template(daemonset));
  } else {
    ++beyond;
  }
}

void OperandNamespaces::read_record(const World& world, const PlannerSettings& settings) {
  if (!stored_.read(world, settings) || !stored_.problem().empty()) return;
  recorded_.clear();
  choice_.clear();
  const std::optional<FleetRecord>& record = stored_.record() ? stored_.record() : stored_.begun();
  if (!record) return;
  choice_ = record->operand_namespaces;
  record->machines.for_each([&](MachineId, const MachineRecord& entry) {
    const std::string_view config_map = entry.config_map.view();
    const auto slash = config_map.find('/');
    if (slash != std::string_view::npos && slash > 0) recorded_.emplace(config_map.substr(0, slash));
  });
}

void OperandNamespaces::decide(World& world, const PlannerSettings& settings, const SeenDaemonSets& seen) {
  read_record(world, settings);
  std::set<std::string> names = settings.operand_namespaces;
  names.insert(seen.of_cluster_policies.begin(), seen.of_cluster_policies.end());
  names.insert(recorded_.begin(), recorded_.end());
  if (settings.operand_namespaces.empty()) names.insert(choice_.begin(), choice_.end());
  const bool unknown = names.empty() && stored_.problem().empty();
  if (unknown) {
    names = seen.namespaces;
    names.erase(settings.operator_namespace);
  }
  world.operand_namespaces_chosen = unknown && !names.empty();
  names.insert(settings.operator_namespace);
  world.operand_namespaces = std::move(names);
}

void keep_trusted_daemonsets(World& world, const PlannerSettings& settings) {
  SeenDaemonSets seen;
  for (const DaemonSet* daemonset : in_order(world.daemonsets)) seen.add(*daemonset, world);
  OperandNamespaces().decide(world, settings, seen);
  world.foreign_daemonsets.mark_synced();
  std::vector<ObjectKey> foreign;
  for (const auto& [key, daemonset] : world.daemonsets.all()) {
    if (!world.operand_namespaces.contains(key.ns)) foreign.push_back(key);
  }
  for (const ObjectKey& key : foreign) {
    world.foreign_daemonsets.apply(*world.daemonsets.find(key));
    world.daemonsets.erase(key);
  }
}

std::string foreign_plugin_text(const DaemonSet& daemonset) {
  const auto container = std::ranges::find_if(daemonset.containers, is_operand_container, &ContainerSpec::name);
  if (container == daemonset.containers.end()) return {};
  return fmt::format(
      "its container {} has the name of a part of the device plugin, and namespace {} is no operand namespace: the "
      "operator ignores this DaemonSet. If it is yours, add the namespace to the chart value operandNamespaces "
      "(--operand-namespaces); else delete it",
      container->name, daemonset.meta.ns.view());
}

std::vector<const DaemonSet*> all_daemonsets(const World& world) {
  std::vector<const DaemonSet*> out = in_order(world.daemonsets);
  const std::vector<const DaemonSet*> foreign = in_order(world.foreign_daemonsets);
  out.insert(out.end(), foreign.begin(), foreign.end());
  std::ranges::sort(out, {}, [](const DaemonSet* daemonset) { return daemonset->meta.key(); });
  return out;
}

}  // namespace gso
