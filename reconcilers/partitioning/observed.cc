#include "reconcilers/partitioning/observed.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/object_refs.h"

namespace gso {

namespace {

// node.partitioning writes nothing else.
ObjectRef object_of(const Action& action) {
  if (const auto* patch = std::get_if<PatchConfigMap>(&action)) return config_map_ref(patch->config_map);
  if (const auto* patch = std::get_if<PatchNode>(&action)) return node_ref(patch->name);
  return {};
}

}  // namespace

PartitioningMode effective_mode(PartitioningMode mode, const PlannerSettings& settings) {
  return settings.rollouts == PolicyMode::observe ? std::max(mode, PartitioningMode::observe) : mode;
}

Plan observed(Plan plan) {
  std::vector<PlannedAction> events;
  for (PlannedAction& planned : plan.actions) {
    if (auto* event = std::get_if<RecordEvent>(&planned.action)) {
      if (event->regarding.kind == "Node") continue;  // It reports a write.
      if (event->reason == kSlicePlanned) event->note += "; partitioning is only observed, and no node is changed";
      events.push_back(std::move(planned));
      continue;
    }
    plan.findings.push_back(
        {Severity::info, object_of(planned.action), std::string(kPartitioningObserves),
         fmt::format("partitioning is only observed (setting partitioning-mode, or max-mode). It would change: {}",
                     planned.message)});
  }
  plan.actions = std::move(events);
  return plan;
}

Plan switched_off(const World& world, const std::set<std::string>& labelled) {
  Plan out;
  const auto first = std::ranges::find_if(labelled, [&](const std::string& name) {
    const Node* node = world.nodes.find(name);
    return node != nullptr && is_partitioned_by_nos(*node);
  });
  if (first == labelled.end()) return out;
  out.findings.push_back({Severity::info, node_ref(*first), std::string(kPartitioningOff),
                          "the node is labelled for partitioning, and partitioning is switched off (setting "
                          "partitioning-mode, chart value modes.partitioning): the operator leaves its GPUs alone"});
  return out;
}

}  // namespace gso
