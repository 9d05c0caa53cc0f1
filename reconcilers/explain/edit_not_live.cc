// See edit_not_live.h.
#include "reconcilers/explain/edit_not_live.h"

#include <fmt/format.h>

#include <algorithm>

#include "reconcilers/cluster/facts.h"
#include "reconcilers/explain/audit_rollouts.h"
#include "reconcilers/explain/remedy.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/node/assess.h"

namespace gso {

std::optional<WallTime> edit_not_live(const World& world, const PlannerSettings& settings,
                                      const FleetIndex::Impl& index, const Node& node, const NodeAssessment& a) {
  if (!drifts(a) || a.at_install != AtInstall::drifted || !node.ready || !serves_gpus(node)) return std::nullopt;
  const PluginInstallation& installation = index.installation_of(a);
  const ConfigMap* config_map = world.configmaps.find(installation.config_map_key());
  if (config_map == nullptr || !config_map->data_time_known) return std::nullopt;
  const WallTime edited = config_map->data_changed;
  if (edited == WallTime{}) return std::nullopt;  // A manifest that was written by hand.
  const NodePods pods = sort_pods(installation, index.pods_of(node.meta.name));
  const auto newest = std::ranges::find_if(pods.plugin, [](const Pod* pod) { return !pod->meta.deletion_timestamp; });
  if (newest == pods.plugin.end() || !is_serving(**newest)) return std::nullopt;
  if (loaded_after(**newest, edited, settings.projection)) return std::nullopt;
  return edited;
}

std::string edit_not_live_text(const World& world, const FleetIndex::Impl& index, const NodeAssessment& a,
                               WallTime edited) {
  const std::string edit = fmt::format(
      "the last edit of ConfigMap {} ({}) is not live on the node: its plugin pod is older, and serves what it read "
      "before ({})",
      index.installation_of(a).id(), k8s::format_time(edited), shown_difference(a));
  if (const std::optional<ServingObstacle> obstacle = obstacle_of(a))
    return fmt::format("{}. Do not restart the pod before this is corrected: {}", edit, obstacle->message);
  return fmt::format("{}. To make the edit live, restart the plugin's pods node by node, or where an operator runs, {}",
                     edit,
                     to_run(world, fmt::format("gpu-sharing-operator rollout start {} --adopt", a.policy.view())));
}

}  // namespace gso
