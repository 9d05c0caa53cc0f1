#include "reconcilers/explain/stop_command.h"

#include <fmt/format.h>

#include "reconcilers/rollout/gates.h"
#include "reconcilers/rollout/stops.h"

namespace gso {

std::string resume_command(const RolloutView& rollout) {
  const World& world = rollout.pass.s.world;
  const std::string resume = "gpu-sharing-operator rollout resume";
  switch (pause_of_rollout(rollout).by) {
    case PausedBy::nobody:
      return {};
    case PausedBy::config_map:
      return resume;
    case PausedBy::policy:
    case PausedBy::rollout:
      break;
  }
  const bool gone = world.policies.find(rollout.key.policy) == nullptr;
  if (gone && world.policies_served && rollout.pass.index.held_policies.contains(rollout.key.policy))
    return forget_policies_command(rollout.pass.s.settings);
  if (pause_of_rollout(rollout).by == PausedBy::policy) return fmt::format("{} policy/{}", resume, rollout.key.policy);
  return rollout.object == nullptr ? resume : fmt::format("{} {}", resume, rollout.object->meta.name);
}

std::string stop_command(const RolloutView& rollout) {
  const std::string command = "gpu-sharing-operator rollout";
  switch (rollout.gate().gate) {
    case Gate::paused:
      return resume_command(rollout);
    case Gate::approval:
      return fmt::format("{} approve policy/{}", command, rollout.key.policy);
    case Gate::aborted:
    case Gate::undone:
      return fmt::format("{} start {}", command, rollout.key.policy);
    default:
      return {};
  }
}

}  // namespace gso
