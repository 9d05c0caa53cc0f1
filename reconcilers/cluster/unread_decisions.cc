#include "reconcilers/cluster/unread_decisions.h"

#include <fmt/format.h>

namespace gso {

bool sharing_objects_unread(const World& world) {
  return world.policies_served && !(world.policies.synced() && world.rollouts.synced());
}

bool record_unread(const World& world, const PlannerSettings& settings) {
  const bool unread = world.unsynced_namespaces.contains(settings.operator_namespace);
  // Another scope of that namespace can be the one that is missing.
  const ObjectKey record{settings.operator_namespace, settings.state_config_map};
  return unread && world.configmaps.find(record) == nullptr;
}

std::string unread_decisions(const World& world, const PlannerSettings& settings) {
  std::string out;
  if (record_unread(world, settings))
    out = fmt::format(
        "States of nodes not checked: the operator's record, ConfigMap {}/{}, cannot be read. Grant list on it",
        settings.operator_namespace, settings.state_config_map);
  if (!sharing_objects_unread(world)) return out;
  return fmt::format(
      "{}{}Policies and stopped rollouts not checked: SharingPolicies and SharingRollouts cannot be "
      "read. Grant list on them",
      out, out.empty() ? "" : ". ");
}

}  // namespace gso
