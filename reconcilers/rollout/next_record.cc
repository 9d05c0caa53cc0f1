#include "reconcilers/rollout/next_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/cluster/record.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/rollout/failures.h"

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

namespace {

// What the record knows about keys, and which of them can still be needed. Each edit of an inline profile makes a new
// key, so that all of them would grow for years.
class KnownKeys {
 public:
  explicit KnownKeys(const Pass& pass) : pass_(pass) {
    for (const auto& [key, rollout] : pass.index.profile_rollouts) used_.insert(id_of(key.config_map, key.key));
  }

  void forget_in(FleetRecord& record) {
    std::erase_if(record.good, [this](const auto& entry) { return is_over(entry); });
    note_good(record);
    const auto forget = [this](auto& by_key) {
      std::erase_if(by_key, [this](const auto& entry) { return is_over(entry.first); });
    };
    forget(record.verified);
    forget(record.verified_on);
    forget(record.previous);
    record.forget_texts();
  }

  [[nodiscard]] bool has_more(const FleetRecord& record) {
    note_good(record);
    const auto any_over = [this](const auto& by_key) {
      return std::ranges::any_of(by_key, [this](const auto& entry) { return is_over(entry.first); });
    };
    return any_over(record.verified) || any_over(record.previous) ||
           std::ranges::any_of(record.good, [this](const auto& entry) { return is_over(entry); });
  }

 private:
  [[nodiscard]] static std::string id_of(std::string_view config_map, std::string_view key) {
    return fmt::format("{}/{}", config_map, key);
  }

  using GoodKey = decltype(FleetRecord::good)::value_type;

  // A policy can return to these.
  void note_good(const FleetRecord& record) {
    for (const auto& entry : record.good) {
      if (is_over(entry)) continue;
      used_.insert(id_of(entry.first.second, entry.second.key));
      used_.insert(id_of(entry.first.second, entry.second.before));
    }
  }

  [[nodiscard]] bool is_over(const GoodKey& entry) const {
    const auto& [of, good] = entry;
    return !is_known_policy(pass_, of.first) && !is_present(of.second, good.key) && !is_present(of.second, good.before);
  }

  [[nodiscard]] bool is_over(const std::string& id) const {
    const std::size_t end = id.rfind('/');
    return end != std::string::npos && !is_present(id.substr(0, end), id.substr(end + 1));
  }

  // Only a namespace in view says which keys are gone. Without DaemonSets it is out of view: the plugin might be
  // installed again. A ConfigMap that pods mount and that is missing comes back with its keys.
  [[nodiscard]] bool is_present(const std::string& config_map, const std::string& key) const {
    if (used_.contains(id_of(config_map, key)) || pass_.index.loaded.contains(id_of(config_map, key))) return true;
    const std::size_t end = config_map.find('/');
    if (end == std::string::npos) return false;
    const std::string ns = config_map.substr(0, end);
    const auto some_installation = [&](auto&& matches) {
      return std::ranges::any_of(pass_.index.discovery.installations, matches);
    };
    const bool in_view = some_installation([&](const PluginInstallation& one) { return one.ns == ns; });
    if (!in_view) return true;
    const ConfigMap* found = pass_.s.world.configmaps.find(ObjectKey{ns, config_map.substr(end + 1)});
    const bool has_key = found == nullptr
                             ? some_installation([&](const PluginInstallation& one) { return one.has_id(config_map); })
                             : found->data.contains(key);
    return has_key || is_on_unserved_node(config_map, key);
  }

  // What other nodes have loaded is in the index.
  [[nodiscard]] bool is_on_unserved_node(const std::string& config_map, const std::string& key) const {
    const std::string id = id_of(config_map, key);
    return std::ranges::any_of(pass_.s.world.nodes.all(), [&](const auto& stored) {
      const NodeAssessment* a = pass_.index.find(stored.first.name);
      if (a != nullptr && a->phase != Phase::unmanaged) return false;
      const k8s::ObjectMeta& node = stored.second->meta;
      const auto shown = node.annotations.get(kProfileAnnotation);
      if (shown) return id.ends_with(fmt::format("/{}", *shown));
      const MachineRecord* entry = pass_.index.record->machines.find(machine_id(node.uid.str()));
      return entry != nullptr && entry->config_map.view() == config_map && entry->key.view() == key;
    });
  }

  const Pass& pass_;
  std::set<std::string> used_;  // Of nodes, and those that a policy can return to.
};

// Those of DaemonSets that are gone. A DaemonSet outside the operand namespaces can be in one again later; if the
// operator does not keep all of these (kMost of discovery.h), any one might still exist.
void forget_templates(const World& world, std::map<std::string, std::int64_t>& templates) {
  if (world.foreign_daemonsets_beyond > 0) return;
  std::set<std::string> present;
  for (const DaemonSet* daemonset : all_daemonsets(world)) present.insert(daemonset->meta.uid.str());
  std::erase_if(templates, [&](const auto& entry) { return !present.contains(entry.first); });
}

// What a view does not show might exist all the same if the view has gaps or does not deliver.
bool sees_everything(const World& world) {
  return world.unsynced_namespaces.empty() && world.stale_views.empty();
}

}  // namespace

void NextRecord::forget() {
  if (!next_ && sees_everything(pass_.s.world) && KnownKeys(pass_).has_more(before_))
    change("Forgotten", "keys that their ConfigMap does not have and no node uses");
}

FleetRecord& NextRecord::change(std::string_view reason, const std::string& message) {
  if (!next_) {
    next_ = before_;
    if (sees_everything(pass_.s.world)) {
      KnownKeys(pass_).forget_in(*next_);
      forget_templates(pass_.s.world, next_->templates);
    }
  }
  reason_ = reason;
  message_ += (message_.empty() ? "" : "; ") + message;
  return *next_;
}

}  // namespace gso
