#include "reconcilers/rollout/recorded_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "reconcilers/cluster/config_map_times.h"
#include "reconcilers/cluster/text_history.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/rollout/rollout_view.h"

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

namespace {

// A stop that can last for days: pods are created meanwhile.
bool is_lasting(Gate gate) {
  constexpr Gate kLasting[] = {Gate::observe,  Gate::paused,       Gate::aborted,       Gate::undone,
                               Gate::approval, Gate::max_failures, Gate::outside_window};
  return std::ranges::find(kLasting, gate) != std::end(kLasting);
}

bool is_held_by_others(const ProfileRollout& profile_rollout) {
  return std::ranges::any_of(std::array{kDriverUpgrade, kMigChange, kQuarantined}, [&](std::string_view holder) {
    return profile_rollout.blocked.contains(std::string(holder));
  });
}

// Somebody else has replaced the pods of a node since the edit.
bool loads_an_edit(const Pass& pass, const RolloutKey& key) {
  return std::ranges::any_of(pass.index.nodes_in(Bucket::self_loaded), [&](const std::string& name) {
    const NodeAssessment* a = pass.index.find(name);
    return a != nullptr && a->cause == ChangeCause::edited && pass.index.is_of(*a, key);
  });
}

// The pods that come are all of one text, and no node has a change that says which one.
bool restarts_daemonsets(const Plan& plan) {
  return std::ranges::any_of(plan.actions, [](const PlannedAction& planned) {
    return std::holds_alternative<RestartDaemonSet>(planned.action);
  });
}

// A node whose change begins in this pass is one that loads the text in the next pass. Those whose consumers are listed
// first can begin then, too.
bool starts_nodes(const Plan& plan) {
  return !plan.consumers_wanted.empty() || std::ranges::any_of(plan.actions, [](const PlannedAction& planned) {
    const auto* patch = std::get_if<PatchNode>(&planned.action);
    return patch != nullptr && patch->set_annotations.contains(std::string(kChangeAnnotation));
  });
}

// Nodes wait for the text, and nothing says for how long: for a person, or for a slot, a KAI pod or their kubelet.
bool is_waited_for(Pass& pass, const RolloutKey& key) {
  const Gate gate = rollout_of(pass, key).gate().gate;
  return is_lasting(gate) || (gate == Gate::open && !starts_nodes(pass.plan));
}

}  // namespace

bool waits_with_new_text(Pass& pass) {
  const bool restarts = restarts_daemonsets(pass.plan);
  return std::ranges::any_of(pass.index.profile_rollouts, [&](const auto& entry) {
    const auto& [key, profile_rollout] = entry;
    const std::string_view text = present_text(profile_rollout);
    const auto known = pass.index.record->history.find(id_of(key));
    if (text.empty() || known == pass.index.record->history.end() || is_last(known->second, text)) return false;
    // A text that has come back is recorded at once, so that the record knows when it came.
    if (std::ranges::find(known->second, text, &RecordedText::revision) != known->second.end()) return true;
    const Tally& nodes = profile_rollout.tally;
    if (restarts || nodes.changing > 0 || is_held_by_others(profile_rollout)) return true;
    if (nodes.loading > 0 && loads_an_edit(pass, key)) return true;
    return nodes.of(Phase::pending) > 0 && is_waited_for(pass, key);
  });
}

}  // namespace gso
