// Since when the data of ConfigMaps is as it is, where their managedFields do not say so.
#pragma once

#include <functional>

#include "reconcilers/model/snapshot.h"

namespace gso {

// Keeps World::data_seen_since up to date from now on: for a ConfigMap without managedFields for its data, the moment
// at which this process first saw the data that it has. `world` outlives its stores' listeners. Call it once, before
// the stores fill.
void follow_config_map_times(World& world, std::function<WallTime()> now);

// When the data certainly was as it is now: nullopt where nothing proves it.
[[nodiscard]] std::optional<WallTime> data_known_since(const World& world, const ConfigMap& config_map);

}  // namespace gso
