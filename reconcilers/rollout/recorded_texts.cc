#include "reconcilers/rollout/recorded_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <utility>

#include "reconcilers/cluster/config_map_times.h"
#include "reconcilers/cluster/text_history.h"

namespace gso {

namespace {

// Until when creation times prove nothing about a text that has just come: the latest one of the pods of the
// installation that lies in the future.
std::optional<WallTime> doubtful_time(const Pass& pass, const PluginInstallation& installation) {
  std::optional<WallTime> latest;
  for (const auto& [key, pod] : pass.s.world.operand_pods.all()) {
    if (key.ns != installation.ns || !is_from_the_future(*pod, pass.s.now)) continue;
    latest = std::max<WallTime>(latest.value_or(pass.s.now), pod->meta.creation_timestamp);
  }
  return latest;
}

// The one text that the nodes of a key have to run; empty: none, or not only one.
std::string_view present_text(const ProfileRollout& profile_rollout) {
  return profile_rollout.targets.size() == 1 ? std::string_view(profile_rollout.targets.begin()->first)
                                             : std::string_view();
}

std::string id_of(const RolloutKey& key) {
  return fmt::format("{}/{}", key.config_map, key.key);
}

}  // namespace

namespace {

// The text of a key that the record does not have yet.
struct NewText {
  std::string id;
  std::string config_map;
  RecordedText text;
};

}  // namespace

std::map<std::string, std::vector<RecordedText>> present_history(const Pass& pass) {
  std::map<std::string, std::vector<RecordedText>> out;
  if (pass.index.record) out = pass.index.record->history;
  std::set<std::string> used;
  std::vector<NewText> added;
  std::map<std::string, int> changed;  // Keys with a new text, by ConfigMap.
  for (const auto& [key, profile_rollout] : pass.index.profile_rollouts) {
    const std::string id = id_of(key);
    used.insert(id);
    const PluginInstallation& installation = pass.index.discovery.installations[profile_rollout.installation];
    const ConfigMap* config_map = pass.s.world.configmaps.find(installation.config_map_key());
    const std::string_view text = present_text(profile_rollout);
    // Several policies can have rollouts of one key.
    const bool is_added = std::ranges::find(added, id, &NewText::id) != added.end();
    if (config_map == nullptr || text.empty() || is_added || is_last(out[id], text)) continue;
    const WallTime since = data_known_since(pass.s.world, *config_map).value_or(pass.s.now);
    ++changed[key.config_map];
    added.push_back(
        {id,
         key.config_map,
         {std::string(text), std::chrono::floor<std::chrono::seconds>(since), doubtful_time(pass, installation)}});
  }
  for (NewText& next : added) {
    std::vector<RecordedText>& texts = out[next.id];
    // When each of several keys has got its text is unknown: until when the text before it was there, too, and pods
    // that came meanwhile can have read either.
    if (changed.at(next.config_map) > 1 && !texts.empty())
      add_text(texts, {std::string(kUnknownText), texts.back().since, {}});
    add_text(texts, std::move(next.text));
  }
  std::erase_if(out, [&](const auto& entry) { return entry.second.empty() || !used.contains(entry.first); });
  return out;
}

bool has_new_text(const Pass& pass) {
  return std::ranges::any_of(pass.index.profile_rollouts, [&](const auto& entry) {
    const auto& [key, profile_rollout] = entry;
    const std::string_view text = present_text(profile_rollout);
    const auto known = pass.index.record->history.find(id_of(key));
    return !text.empty() && known != pass.index.record->history.end() && !is_last(known->second, text);
  });
}

}  // namespace gso
