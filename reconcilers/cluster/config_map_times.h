// Since when the data of a ConfigMap has its present value, if its managedFields do not show it.
#pragma once

#include <functional>

#include "reconcilers/model/snapshot.h"

namespace gso {

// Keeps World::data_seen_since up to date from now on: for a ConfigMap without managedFields for its data, the moment
// at which this process first saw its present data. `world` outlives its stores' listeners. Call it once, before the
// stores fill.
void follow_config_map_times(World& world, std::function<WallTime()> now);

// Since when the data has certainly had its present value; nullopt if that cannot be proved.
[[nodiscard]] std::optional<WallTime> data_known_since(const World& world, const ConfigMap& config_map);
// nullopt also if the ConfigMap does not exist.
[[nodiscard]] std::optional<WallTime> data_known_since(const World& world, const ObjectKey& config_map);

}  // namespace gso
