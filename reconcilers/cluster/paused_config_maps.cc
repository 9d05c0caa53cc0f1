#include "reconcilers/cluster/paused_config_maps.h"

#include <fmt/format.h>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/switch_value.h"

namespace gso {

namespace {

// Of "namespace/name".
ObjectKey key_of(const std::string& id) {
  const std::size_t slash = id.find('/');
  return slash == std::string::npos ? ObjectKey{"", id} : ObjectKey{id.substr(0, slash), id.substr(slash + 1)};
}

// Of the ConfigMap that was paused; null: none was.
const std::string* recorded_uid(const FleetRecord* record, const ObjectKey& config_map) {
  if (record == nullptr) return nullptr;
  const auto known = record->paused_config_maps.find(k8s::to_string(config_map));
  return known == record->paused_config_maps.end() ? nullptr : &known->second;
}

}  // namespace

bool is_replaced(const World& world, const FleetRecord* record, const ObjectKey& config_map) {
  const ConfigMap* found = world.configmaps.find(config_map);
  const std::string* uid = recorded_uid(record, config_map);
  return found != nullptr && uid != nullptr && found->meta.uid.str() != *uid;
}

ConfigMapPause pause_of(const World& world, const FleetRecord* record, const ObjectKey& config_map) {
  const ConfigMap* found = world.configmaps.find(config_map);
  const auto value = found == nullptr ? std::nullopt : found->meta.annotations.get(kPausedAnnotation);
  if (is_switched_on(value)) return ConfigMapPause::annotation;
  if (recorded_uid(record, config_map) == nullptr) return ConfigMapPause::none;
  const bool lifted = found != nullptr && ((value && says_no(*value)) || !is_replaced(world, record, config_map));
  return lifted ? ConfigMapPause::none : ConfigMapPause::record;
}

std::string describe(ConfigMapPause pause, const ObjectKey& config_map) {
  if (pause == ConfigMapPause::none) return {};
  const std::string id = k8s::to_string(config_map);
  if (pause == ConfigMapPause::annotation)
    return fmt::format("ConfigMap {} has the annotation {}", id, kPausedAnnotation);
  return fmt::format(
      "ConfigMap {} had the annotation {} when it was deleted, and the pause still applies. To end it: `{}`", id,
      kPausedAnnotation, end_pause_command(config_map));
}

std::string end_pause_command(const ObjectKey& config_map) {
  return fmt::format("kubectl annotate configmap {} --namespace {} {}=false --overwrite", config_map.name,
                     config_map.ns, kPausedAnnotation);
}

std::map<std::string, std::string> update_paused_config_maps(const FleetRecord& record, const World& world,
                                                             const std::vector<PluginInstallation>& installations) {
  // A ConfigMap that is known stays known while its DaemonSets are temporarily missing.
  std::map<std::string, std::string> out = record.paused_config_maps;
  for (const PluginInstallation& installation : installations) {
    if (!installation.config_map.empty()) out.try_emplace(k8s::to_string(installation.config_map_key()));
  }
  for (auto& [id, uid] : out) {
    const ObjectKey key = key_of(id);
    switch (pause_of(world, &record, key)) {
      case ConfigMapPause::none:
        uid.clear();
        break;
      case ConfigMapPause::annotation:
        uid = world.configmaps.find(key)->meta.uid.str();
        break;
      case ConfigMapPause::record:
        break;
    }
  }
  std::erase_if(out, [](const auto& entry) { return entry.second.empty(); });
  return out;
}

}  // namespace gso
