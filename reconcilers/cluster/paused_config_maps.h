// The pause of a plugin's ConfigMap (annotation gpusharing.dev/paused). It is a stop that a person has set, so it
// outlives the object: `helm upgrade --force` or a GitOps replace deletes a ConfigMap and creates it without the
// annotation.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reconcilers/cluster/discovery.h"
#include "reconcilers/cluster/record.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

enum class ConfigMapPause : std::uint8_t {
  none,
  annotation,  // The ConfigMap has the annotation.
  record,  // It had it when it was deleted: it is missing, or another one has taken its place without the annotation.
};
// `record`: null if there is none. A ConfigMap that keeps its uid and loses the annotation is not paused any more; a
// new one must say that it is not (annotation "false").
[[nodiscard]] ConfigMapPause pause_of(const World& world, const FleetRecord* record, const ObjectKey& config_map);
// A paused ConfigMap has been deleted and another one has its name: only the annotation "false" ends the pause.
[[nodiscard]] bool is_replaced(const World& world, const FleetRecord* record, const ObjectKey& config_map);
// For people; empty: not paused.
[[nodiscard]] std::string describe(ConfigMapPause pause, const ObjectKey& config_map);
// Ends it, whatever paused the ConfigMap. `rollout resume` does the same where the CRDs are installed.
[[nodiscard]] std::string end_pause_command(const ObjectKey& config_map);

// What FleetRecord::paused_config_maps must contain now.
[[nodiscard]] std::map<std::string, std::string> update_paused_config_maps(
    const FleetRecord& record, const World& world, const std::vector<PluginInstallation>& installations);

}  // namespace gso
