// See rollout_object.h.
#include "reconcilers/rollout/rollout_object.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/rollout_subject.h"
#include "reconcilers/rollout/stops.h"

namespace gso {

void RolloutObjects::ensure(const RolloutView& rollout, const std::string& target) {
  constexpr std::size_t kMaxText = 64 << 10;  // A longer profile is left out: the object must fit into etcd.
  std::string profile;
  if (const ConfigMap* config_map = pass_.s.world.configmaps.find(rollout.installation.config_map_key())) {
    const auto text = config_map->data.find(rollout.key.key);
    if (text != config_map->data.end() && text->second && text->second->size() <= kMaxText) profile = *text->second;
  }
  ensure(rollout.key, target, profile);
}

void RolloutObjects::ensure(const RolloutKey& key, const std::string& target, const std::string& profile) {
  const std::string name = rollout_name(key, target);
  if (!pass_.s.world.policies_served || pass_.s.world.rollouts.find(name) != nullptr || !made_.insert(name).second)
    return;
  nlohmann::ordered_json spec = {{"policy", key.policy}};
  if (const std::string_view daemonset = daemonset_of(key.config_map); !daemonset.empty()) {
    spec["daemonSet"] = daemonset;
  } else {
    spec["configMap"] = key.config_map;
  }
  spec["key"] = key.key;
  spec["toRevision"] = target;
  if (!profile.empty()) spec["profile"] = profile;
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
      CreateObject{rollout_ref(name), dump(object)}, kept ? "RolloutRestored" : "RolloutStarted",
      daemonset_of(key.config_map).empty()
          ? fmt::format("Rolling out {} (key {}) to {} under policy {}", key.config_map, key.key, target, key.policy)
          : fmt::format("Rolling out {} to {} under policy {}", describe_subject(key.config_map, key.key), target,
                        key.policy));
}

}  // namespace gso
