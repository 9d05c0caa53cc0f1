#include "reconcilers/cluster/config_map_times.h"

#include <algorithm>
#include <utility>

namespace gso {

namespace {

bool same_data(const ConfigMap& a, const ConfigMap& b) {
  return a.data.size() == b.data.size() &&
         std::equal(a.data.begin(), a.data.end(), b.data.begin(), [](auto& x, auto& y) {
           return x.first == y.first && x.second && y.second && *x.second == *y.second;
         });
}

}  // namespace

void follow_config_map_times(World& world, std::function<WallTime()> now) {
  world.configmaps.add_listener(
      [&world, now = std::move(now)](const ObjectKey& key, const auto& before, const auto& after) {
        if (after == nullptr || after->data_time_known) {
          world.data_seen_since.erase(key);
          return;
        }
        const bool known = world.data_seen_since.contains(key) && before != nullptr && same_data(*before, *after);
        if (!known) world.data_seen_since[key] = now();
      });
}

std::optional<WallTime> data_known_since(const World& world, const ConfigMap& config_map) {
  if (config_map.data_time_known) return config_map.data_changed;
  const auto seen = world.data_seen_since.find(config_map.meta.key());
  return seen == world.data_seen_since.end() ? std::nullopt : std::optional(seen->second);
}

std::optional<WallTime> data_known_since(const World& world, const ObjectKey& config_map) {
  const ConfigMap* found = world.configmaps.find(config_map);
  return found == nullptr ? std::nullopt : data_known_since(world, *found);
}

}  // namespace gso
