#include "reconcilers/explain/earlier_revision.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/model/policy.h"

namespace gso {

ObjectKey config_map_key(std::string_view id) {
  const std::size_t slash = id.find('/');
  if (slash == std::string_view::npos) return {"", std::string(id)};
  return {std::string(id.substr(0, slash)), std::string(id.substr(slash + 1))};
}

std::vector<const SharingRollout*> newest_rollouts(const World& world) {
  std::vector<std::tuple<k8s::WallTime, k8s::WallTime, const SharingRollout*>> began;
  for (const SharingRollout* rollout : in_order(world.rollouts)) {
    const k8s::WallTime created = rollout->meta.creation_timestamp;
    const auto started = k8s::parse_rfc3339(text_at(parse_status(rollout->status_json), "startedAt"));
    began.emplace_back(started.value_or(created), created, rollout);
  }
  std::ranges::stable_sort(began, [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(b), std::get<1>(b)) < std::tie(std::get<0>(a), std::get<1>(a));
  });
  std::vector<const SharingRollout*> out;
  for (const auto& entry : began) out.push_back(std::get<2>(entry));
  return out;
}

std::string present_revision(const World& world, const FleetIndex::Impl& index, const std::string& config_map,
                             const std::string& key) {
  for (const PluginInstallation& installation : index.discovery.installations) {
    if (installation.id() != config_map) continue;
    const ConfigMap* object = world.configmaps.find(installation.config_map_key());
    if (object == nullptr) return {};
    const auto text = object->data.find(key);
    if (text == object->data.end() || !text->second) return {};
    return index.profiles.compile(*text->second)->revision;
  }
  return {};
}

std::string text_on_record(const World& world, const FleetRecord* record, const std::string& config_map,
                           const std::string& revision) {
  if (record != nullptr) {
    if (const auto kept = record->texts.find(revision); kept != record->texts.end()) return kept->second;
  }
  for (const SharingRollout* rollout : newest_rollouts(world)) {
    if (rollout->to_revision == revision && rollout->config_map == config_map && !rollout->profile.empty())
      return rollout->profile;
  }
  return {};
}

EarlierRevision earlier_revision(const World& world, const FleetRecord* record, const std::string& config_map,
                                 const std::string& key, const std::string& from) {
  const std::string id = config_map + "/" + key;
  const auto other = [&](const std::map<std::string, std::string>& revisions) {
    const auto at = revisions.find(id);
    return at == revisions.end() || at->second == from ? std::string() : at->second;
  };
  if (record != nullptr) {
    if (std::string last = other(record->verified); !last.empty()) return {std::move(last), "verified last"};
    if (std::string before = other(record->previous); !before.empty()) {
      return {std::move(before),
              record->verified.contains(id) ? "verified before it" : "in use at the installation, not verified"};
    }
  }
  for (const SharingRollout* rollout : newest_rollouts(world)) {
    const bool of_key = rollout->config_map == config_map && rollout->key == key;
    if (of_key && rollout->to_revision != from && rollout->phase == "Completed")
      return {rollout->to_revision, "completed before it"};
  }
  return {};
}

std::string inline_text_before(const World& world, const SharingRollout& rollout) {
  for (const SharingRollout* other : newest_rollouts(world)) {
    const bool same = other->policy == rollout.policy && other->config_map == rollout.config_map;
    if (same && other->to_revision != rollout.to_revision && other->phase == "Completed") return other->profile;
  }
  return {};
}

bool has_earlier_text(const World& world, const FleetIndex::Impl& index, const std::string& config_map,
                      const std::string& key) {
  const FleetRecord* record = index.record_or_null();
  const EarlierRevision earlier =
      earlier_revision(world, record, config_map, key, present_revision(world, index, config_map, key));
  return !earlier.revision.empty() && !text_on_record(world, record, config_map, earlier.revision).empty();
}

bool can_go_back(const World& world, const FleetIndex::Impl& index, std::string_view policy) {
  return std::ranges::any_of(index.profile_rollouts, [&](const auto& entry) {
    const RolloutKey& key = entry.first;
    const Tally& nodes = entry.second.tally;
    return key.policy == policy && nodes.settled < nodes.total &&
           has_earlier_text(world, index, key.config_map, key.key);
  });
}

}  // namespace gso
