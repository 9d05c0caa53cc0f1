// See whole_cluster.h.
#include "reconcilers/lint/whole_cluster.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>

#include "reconcilers/checks/preflight.h"
#include "reconcilers/cluster/policy_keys.h"
#include "reconcilers/fleet/fleet_index.h"

namespace gso {
namespace {

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

}  // namespace

std::vector<Finding> check_cluster(const World& world, const PlannerSettings& settings) {
  FleetIndex fleet;
  fleet.note_everything_changed();
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
  check_policy_keys(world, fleet, found);
  return found;
}

}  // namespace gso
