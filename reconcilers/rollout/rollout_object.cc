// See rollout_object.h.
#include "reconcilers/rollout/rollout_object.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reconcilers/model/labels.h"
#include "reconcilers/rollout/stops.h"

namespace gso {

void RolloutObjects::ensure(const RolloutView& rollout, const std::string& target) {
  const RolloutKey& key = rollout.key;
  const std::string name = rollout_name(key, target);
  if (!pass_.s.world.policies_served || pass_.s.world.rollouts.find(name) != nullptr || !made_.insert(name).second)
    return;
  constexpr std::size_t kMaxText = 64 << 10;  // A longer profile is left out: the object must fit into etcd.
  nlohmann::ordered_json spec = {
      {"policy", key.policy}, {"configMap", key.config_map}, {"key", key.key}, {"toRevision", target}};
  if (const ConfigMap* config_map = pass_.s.world.configmaps.find(rollout.installation.config_map_key())) {
    const auto text = config_map->data.find(key.key);
    if (text != config_map->data.end() && text->second && text->second->size() <= kMaxText)
      spec["profile"] = *text->second;
  }
  nlohmann::ordered_json object = {
      {"apiVersion", kApiVersion}, {"kind", "SharingRollout"}, {"metadata", {{"name", name}}}};
  const auto kept = switches_to_restore(pass_, key, target);
  if (kept) {
    if (kept->paused) spec["paused"] = true;
    if (kept->aborted) spec["aborted"] = true;
    if (kept->undone) object["metadata"]["annotations"][std::string(kUndoAnnotation)] = "true";
  }
  object["spec"] = std::move(spec);
  pass_.add(
      CreateObject{rollout_ref(name), object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)},
      kept ? "RolloutRestored" : "RolloutStarted",
      fmt::format("Rolling out {} (key {}) to {} under policy {}", key.config_map, key.key, target, key.policy));
}

}  // namespace gso
