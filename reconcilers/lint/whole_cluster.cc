// See whole_cluster.h.
#include "reconcilers/lint/whole_cluster.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "reconcilers/checks/check.h"
#include "reconcilers/checks/object_checks.h"
#include "reconcilers/cluster/dra_offers.h"
#include "reconcilers/cluster/facts.h"
#include "reconcilers/cluster/nos.h"
#include "reconcilers/cluster/policy_keys.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/foreign_text.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"

namespace gso {
namespace {

// ConfigMaps with profiles, by "namespace/name": those that a plugin mounts or a ClusterPolicy names; where neither is
// known, all that hold a profile. Empty ones are left out.
std::map<std::string, const ConfigMap*> profile_maps(const World& world, const Discovery& discovery) {
  std::map<std::string, const ConfigMap*> out;
  bool named = false;
  for (const PluginInstallation& installation : discovery.installations) {
    for (const std::string& name : {installation.config_map, installation.announced_config_map}) {
      named = named || !name.empty();
      const ConfigMap* found = name.empty() ? nullptr : world.configmaps.find({installation.ns, name});
      if (found != nullptr && !found->data.empty()) out.emplace(installation.ns + "/" + name, found);
    }
  }
  for (const auto& [key, policy] : world.clusterpolicies.all()) {
    named = named || !policy->config_name.empty();
    for (const auto& [id, config_map] : world.configmaps.all()) {
      if (id.name == policy->config_name && !config_map->data.empty())
        out.emplace(k8s::to_string(id), config_map.get());
    }
  }
  if (named) return out;
  for (const auto& [id, config_map] : world.configmaps.all()) {
    if (config_map->data.contains(std::string(kRecordKey)) || config_map->data.contains(std::string(kShardKey))) {
      continue;  // The operator's own record.
    }
    const bool holds = std::any_of(config_map->data.begin(), config_map->data.end(), [](const auto& entry) {
      return entry.second != nullptr && reads_like_profile(*entry.second);
    });
    if (holds) out.emplace(k8s::to_string(id), config_map.get());
  }
  return out;
}

// SharingPolicies that name a key which the ConfigMap of one of their nodes, or every ConfigMap, lacks.
void check_policy_keys(const World& world, const FleetIndex& fleet, std::vector<Finding>& found) {
  const FleetIndex::Impl& index = fleet.impl();
  std::map<std::string, std::set<std::string>> wrong;  // By policy.
  for (const std::string& name : fleet.node_names()) {
    const NodeAssessment& node = *index.find(name);
    if (node.wrong_key) wrong[std::string(node.policy.view())].insert(index.installation_of(node).id());
  }
  const auto all = profile_maps(world, index.discovery);
  for (const auto& [key, policy] : world.policies.all()) {
    if (!policy->config_map_key || is_managed_key(*policy->config_map_key)) continue;
    const bool somewhere = std::any_of(all.begin(), all.end(), [&](const auto& entry) {
      return entry.second->data.contains(*policy->config_map_key);
    });
    for (const auto& [id, config_map] : all) {
      if (somewhere && !wrong[policy->meta.name].contains(id)) continue;
      found.push_back({policy->mode == PolicyMode::observe ? Severity::warning : Severity::error,
                       {"gpusharing.dev/v1alpha1", "SharingPolicy", "", policy->meta.name, ""},
                       "ConfigInvalid",
                       missing_key(*policy, id, *config_map)});
    }
  }
}

// The resource by which DRA offers the node's GPUs a second time, and the DeviceClass that names it: nvidia.com/gpu
// always, since pods ask for it even where the plugin has another name for it; else what the node's plugin serves.
std::pair<std::string, std::string> offered_twice(const DraOffers& dra, const Node& node) {
  if (const std::string& gpus = dra.class_of(node.meta.name); !gpus.empty()) return {std::string(kGpuResource), gpus};
  for (const auto& [resource, device_class] : dra.classes()) {
    const auto served = node.capacity.find(Interned(resource));
    const auto allocatable = node.allocatable.find(Interned(resource));
    const bool serves = (served != node.capacity.end() && served->second > 0) ||
                        (allocatable != node.allocatable.end() && allocatable->second > 0);
    if (serves) return {resource, device_class};
  }
  return {};
}

// Without Node objects: only a device plugin on those nodes makes it a problem, and that is not known.
void check_offers_without_nodes(const World& world, const DraOffers& dra, std::vector<Finding>& found) {
  const std::vector<std::string> nodes = dra.offering(world);
  if (nodes.empty() || !world.nodes.all().empty()) return;
  for (const auto& [resource, device_class] : dra.classes()) {
    found.push_back({Severity::warning,
                     {"resource.k8s.io/v1", "DeviceClass", "", device_class, ""},
                     std::string(kDraDoubleOffer),
                     fmt::format("it has extendedResourceName: {}, and the DRA driver {} offers GPUs on {}: where a "
                                 "device plugin serves these nodes, the scheduler gives the same GPU to a second pod "
                                 "while the plugin restarts. Remove extendedResourceName, or keep the DRA driver off "
                                 "nodes of the device plugin",
                                 shown_value(resource), kGpuDraDriver, first_names(nodes))});
  }
}

// Checked for each node: results that similar nodes share do not contain it. If the manifests contain no DaemonSet, a
// Node's capacity shows whether a device plugin serves it.
void check_double_offers(const World& world, const FleetIndex& fleet, std::vector<Finding>& found) {
  const FleetIndex::Impl& index = fleet.impl();
  check_offers_without_nodes(world, index.dra, found);
  for (const std::string& name : index.dra.offering(world)) {
    const Node* node = world.nodes.find(name);
    const NodeAssessment* assessment = index.find(name);
    if (node == nullptr || is_partitioned_by_nos(*node)) continue;
    const bool served = assessment != nullptr ? assessment->phase != Phase::unmanaged
                                              : index.discovery.installations.empty() && serves_gpus(*node);
    const auto [resource, device_class] = offered_twice(index.dra, *node);
    if (!served || device_class.empty()) continue;
    found.push_back({find_check(kDraDoubleOffer)->severity,
                     {"v1", "Node", "", name, ""},
                     std::string(kDraDoubleOffer),
                     resource == kGpuResource ? double_offer(device_class) : double_offer_of(resource, device_class)});
  }
}

}  // namespace

std::vector<Finding> check_cluster(const World& world, const PlannerSettings& settings) {
  FleetIndex fleet;
  fleet.refresh(world, settings);
  const FleetIndex::Impl& index = fleet.impl();
  std::vector<Finding> found = check_operand_setup(world, index.discovery);
  for (const std::string& name : fleet.node_names()) {
    const NodeAssessment* assessment = index.find(name);
    if (assessment == nullptr || assessment->setup == nullptr) {
      continue;
    }
    for (const Diagnostic& d : *assessment->setup) {
      const std::string where = d.path.empty() ? d.message : fmt::format("{}: {}", d.path, d.message);
      found.push_back({d.severity, {"v1", "Node", "", name, ""}, d.code, where});
    }
  }
  check_double_offers(world, fleet, found);
  check_policy_keys(world, fleet, found);
  return found;
}

}  // namespace gso
