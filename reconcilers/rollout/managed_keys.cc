#include "reconcilers/rollout/managed_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/stops.h"

namespace gso {

namespace {

class ManagedKeys {
 public:
  explicit ManagedKeys(Pass& pass) : pass_(pass) {}

  void run() {
    find_wanted();
    for (const auto& [where, keys] : wanted_) write_missing(where, keys);
    for (const PluginInstallation& installation : pass_.index.discovery.installations) collect(installation);
  }

 private:
  using Keys = std::map<std::string, std::string>;  // key -> text

  void find_wanted() {
    for (const auto& [rollout_key, profile_rollout] : pass_.index.profile_rollouts) {
      const PluginInstallation& installation = pass_.index.discovery.installations[profile_rollout.installation];
      if (installation.config_map.empty()) continue;
      const SharingPolicy& policy = pass_.index.policy(pass_.s.world, rollout_key.policy);
      if (policy.inline_profile && pass_.s.settings.mode_of(policy) != PolicyMode::observe) {
        want(installation, inline_profile_key(policy.meta.name, *policy.inline_profile),
             inline_profile_text(*policy.inline_profile));
      }
      if (!is_managed_key(rollout_key.key)) continue;
      const std::string text = known_text(rollout_key);
      want(installation, rollout_key.key, text.empty() ? recorded_text(rollout_key.key) : text);
    }
    keep_for_undo();
  }

  // The target of an undo keeps its key: if the key were written again, kubelets would have to project it first.
  void keep_for_undo() {
    if (!pass_.index.record) return;
    for (const auto& [where, good] : pass_.index.record->good) {
      const auto& [policy, id] = where;
      const auto installation = std::ranges::find(pass_.index.discovery.installations, id,
                                                  [](const PluginInstallation& s) { return s.id(); });
      if (installation == pass_.index.discovery.installations.end() || !is_known_policy(pass_, policy)) continue;
      if (is_managed_key(good.before)) want(*installation, good.before, known_text({policy, id, good.before}));
    }
  }

  void want(const PluginInstallation& installation, const std::string& key, const std::string& text) {
    if (text.empty() || !pass_.index.profiles.compile(text)->valid)
      return;  // Never written: the nodes report why they are Blocked.
    wanted_[installation.config_map_key()].emplace(key, text);
    // The ConfigMap that the ClusterPolicy announces gets the key before its pods start.
    if (installation.announced && !installation.announced_config_map.empty())
      wanted_[{installation.ns, installation.announced_config_map}].emplace(key, text);
  }

  // A key that only nodes still use (its policy was deleted or uses another key): the text comes from the rollout of
  // that key. The hash in the key's name shows whether the text matches.
  [[nodiscard]] std::string known_text(const RolloutKey& rollout_key) const {
    for (const auto& [name, rollout] : pass_.s.world.rollouts.all()) {
      if (rollout->config_map == rollout_key.config_map && rollout->key == rollout_key.key &&
          is_text_of_key(rollout->profile, rollout_key.key)) {
        return rollout->profile;
      }
    }
    return {};
  }

  // The same from the record, if no SharingRollout has it any more.
  [[nodiscard]] std::string recorded_text(const std::string& key) const {
    if (!pass_.index.record) return {};
    for (const auto& [revision, text] : pass_.index.record->texts)
      if (is_text_of_key(text, key)) return text;
    return {};
  }

  void write_missing(const ObjectKey& where, const Keys& keys) {
    const ConfigMap* config_map = pass_.s.world.configmaps.find(where);
    if (config_map == nullptr || config_map->immutable || pass_.s.world.unsynced_namespaces.contains(where.ns)) return;
    WriteConfigMap write{where, {}, {}};
    std::string lost;
    std::int64_t nodes = 0;
    std::size_t added = 0;
    for (const auto& [key, text] : keys) {
      if (const auto present = key_text(config_map, key); present && *present == text) continue;
      if (!has_room(*config_map, key, text, added)) continue;  // ConfigMapFull of the nodes says so.
      added += key.size() + text.size();
      write.set[key] = text;
      const auto used = pass_.index.loaded.find(fmt::format("{}/{}", k8s::to_string(where), key));
      if (used == pass_.index.loaded.end()) continue;
      lost += (lost.empty() ? "" : ", ") + key;
      nodes += used->second;
    }
    if (write.set.empty() || (lost.empty() && breaks_single(where, *config_map))) return;
    std::string message = "keys of inline profiles";
    if (!lost.empty()) {
      message = fmt::format(
          "ConfigMap {} lost or changed its key{} {}, which {} use{}; the operator restored {}. According to "
          "managedFields, {} wrote its data last: configure that client not to change keys that begin with gso-",
          k8s::to_string(where), lost.contains(',') ? "s" : "", lost, counted(nodes, "node"), nodes == 1 ? "s" : "",
          lost.contains(',') ? "them" : "it", last_writer(*config_map));
      pass_.finding(Severity::warning, config_map_ref(where), kConfigMapReplacedByGitOps, message);
      pass_.event(config_map_ref(where), true, kConfigMapReplacedByGitOps, "Restore", message);
    }
    pass_.add(std::move(write), lost.empty() ? std::string_view("KeysWritten") : kConfigMapReplacedByGitOps,
              std::move(message));
  }

  // The nodes of the policy report why they are Blocked.
  [[nodiscard]] bool breaks_single(const ObjectKey& where, const ConfigMap& config_map) const {
    return std::ranges::any_of(pass_.index.discovery.installations, [&](const PluginInstallation& installation) {
      return installation.config_map_key() == where && relies_on_single_key(installation, config_map);
    });
  }

  static std::string last_writer(const ConfigMap& config_map) {
    const auto it = std::ranges::find_if(config_map.data_managers.rbegin(), config_map.data_managers.rend(),
                                         [](const Interned& name) { return name != kFieldManager; });
    return it == config_map.data_managers.rend() ? "an unknown client" : std::string(it->view());
  }

  // Only keys that the operator's field manager owns and whose name contains the hash of their text; late, for pods
  // that still show them.
  void collect(const PluginInstallation& installation) {
    const ObjectKey where = installation.config_map_key();
    const ConfigMap* config_map = pass_.s.world.configmaps.find(where);
    if (installation.announcement_unknown) return;  // The announced ConfigMap might need the keys.
    if (config_map == nullptr || config_map->our_keys.empty() || config_map->immutable ||
        pass_.s.world.unsynced_namespaces.contains(installation.ns) || !collected_.insert(where).second) {
      return;
    }
    WriteConfigMap write{where, {}, {}};
    const Keys& wanted = wanted_[where];
    for (const auto& [key, text] : config_map->data) {
      const std::string id = fmt::format("{}/{}", k8s::to_string(where), key);
      const bool by_operator = config_map->our_keys.contains(key) && text && is_text_of_key(*text, key);
      if (!by_operator || wanted.contains(key) || pass_.index.loaded.contains(id) || is_named(key) ||
          is_default(where, key))
        continue;
      if (pass_.held_for({Timer::key_unused, k8s::to_string(where), key}, pass_.s.settings.keep_unused_keys))
        write.remove.insert(key);
    }
    if (write.remove.empty()) return;
    pass_.add(std::move(write), "KeysCollected", "no node has used these keys for a while");
  }

  // By the label of a node, even if no plugin serves it now, or by a policy, even if it has no node now.
  [[nodiscard]] bool is_named(const std::string& key) const {
    const auto names = [&](const SharingPolicy& policy) {
      return policy.inline_profile && inline_profile_key(policy.meta.name, *policy.inline_profile) == key;
    };
    return names_on_nodes().contains(key) ||
           std::ranges::any_of(pass_.s.world.policies.all(), [&](const auto& entry) { return names(*entry.second); }) ||
           std::ranges::any_of(pass_.index.held_policies, [&](const auto& entry) { return names(entry.second); });
  }

  // The managed keys that labels name, whatever the sidecars of a plugin call the profile label: while no plugin serves
  // a node, nobody says that. Read only once there is a key that might be removed.
  [[nodiscard]] const std::set<std::string>& names_on_nodes() const {
    if (on_nodes_) return *on_nodes_;
    on_nodes_.emplace();
    for (const auto& [name, node] : pass_.s.world.nodes.all()) {
      for (const auto& label : node->meta.labels)
        if (is_managed_key(label.value.view())) on_nodes_->emplace(label.value.view());
    }
    return *on_nodes_;
  }

  [[nodiscard]] bool is_default(const ObjectKey& where, const std::string& key) const {
    return std::ranges::any_of(pass_.index.discovery.installations, [&](const PluginInstallation& installation) {
      if (installation.config_map_key() != where) return false;
      return installation.announced_default == key ||
             std::ranges::any_of(installation.operands,
                                 [&](const Operand& operand) { return operand.default_key == key; });
    });
  }

  Pass& pass_;
  std::map<ObjectKey, Keys> wanted_;
  std::set<ObjectKey> collected_;
  mutable std::optional<std::set<std::string>> on_nodes_;
};

}  // namespace

void plan_managed_keys(Pass& pass) {
  if (pass.s.settings.rollouts != PolicyMode::observe) ManagedKeys(pass).run();
}

namespace {
// Runs while a key keeps its present text.
TimerKey text_timer(const PluginInstallation& installation, const std::string& key, const std::string& text) {
  return {Timer::key_text, installation.id(), fmt::format("{}/{:016x}", key, std::hash<std::string>{}(text))};
}

// Since when the text has been there, by the API server's clock. The operator's clock might differ, so this time only
// seeds the timer of an operator that has just started. Writes by the operator do not count as a change of the data and
// leave no such time.
std::optional<WallTime> stored_text_time(const ConfigMap& config_map, const std::string& key) {
  if (!config_map.data_time_known || config_map.our_keys.contains(key)) return std::nullopt;
  return config_map.data_changed;
}

}  // namespace

void run_text_timers(Pass& pass) {
  for (const PluginInstallation& installation : pass.index.discovery.installations) {
    const ConfigMap* config_map = pass.s.world.configmaps.find(installation.config_map_key());
    if (config_map == nullptr) continue;
    for (const auto& [key, text] : config_map->data)
      if (text) pass.ages.run(text_timer(installation, key, *text), stored_text_time(*config_map, key));
  }
}

std::optional<WallTime> text_since(const Pass& pass, const PluginInstallation& installation, const std::string& key) {
  if (key.empty()) return WallTime{};  // A node without a key shares nothing: it has no text to read.
  const ConfigMap* config_map = pass.s.world.configmaps.find(installation.config_map_key());
  const auto text = key_text(config_map, key);
  if (!text) return std::nullopt;
  const WallTime seen = pass.since(text_timer(installation, key, *text));
  const auto known_since = data_known_since(pass.s.world, *config_map);
  return config_map->our_keys.contains(key) || !known_since ? seen : std::min(seen, *known_since);
}

bool key_is_projected(Pass& pass, const PluginInstallation& installation, const std::string& key) {
  const ConfigMap* config_map = pass.s.world.configmaps.find(installation.config_map_key());
  const auto text = key_text(config_map, key);
  if (!text) return false;
  const bool known = pass.ages.has_run_for(text_timer(installation, key, *text), pass.s.settings.projection,
                                           stored_text_time(*config_map, key));
  // A change waits for the projection, so the fleet has not settled.
  if (!known) pass.plan.timers.push_back({Timer::projecting, installation.id(), key});
  return known;
}

std::vector<std::string> nodes_of_unknown_owner(const Pass& pass) {
  std::set<std::string> out;
  for (const auto& [key, profile_rollout] : pass.index.profile_rollouts) {
    const auto held = profile_rollout.blocked.find(std::string(kOwnedUnreadable));
    if (held != profile_rollout.blocked.end()) out.insert(held->second.begin(), held->second.end());
  }
  for (const Bucket bucket : {Bucket::changing, Bucket::failed}) {
    for (const std::string& name : pass.index.nodes_in(bucket))
      if (pass.index.find(name)->obstacle.code == kOwnedUnreadable) out.insert(name);
  }
  return {out.begin(), out.end()};
}

namespace {

// What nos partitions is left to nos.
bool is_label_of(const Node& node, std::string_view policy) {
  if (!node.meta.annotations.contains(kOwnedAnnotation) || is_partitioned_by_nos(node)) return false;
  return std::ranges::any_of(owned_labels(node), [&](const auto& owned) {
    return owned.second.policy == policy && label_writer(node, owned.first) == policy;
  });
}

}  // namespace

std::vector<std::string> unserved_with_label_of(const Pass& pass, std::string_view policy) {
  std::vector<std::string> out;
  for (const auto& [key, node] : pass.s.world.nodes.all()) {
    const NodeAssessment* a = pass.index.find(key.name);
    const bool served = a != nullptr && a->phase != Phase::unmanaged;
    if (!served && is_label_of(*node, policy)) out.push_back(key.name);
  }
  std::ranges::sort(out);
  return out;
}

void plan_finalizers(Pass& pass) {
  // In mode Observe no finalizer is added; existing ones can be removed.
  const bool observes = pass.s.settings.rollouts == PolicyMode::observe;
  for (const SharingPolicy* policy : in_order(pass.s.world.policies)) {
    const std::string& name = policy->meta.name;
    const bool has = std::ranges::find(policy->finalizers, kRevertFinalizer) != policy->finalizers.end();
    const bool labels = policy->config_map_key || policy->inline_profile;
    const bool used = pass.index.labelled.contains(name);
    const bool reverts = policy->deletion_policy == DeletionPolicy::revert;
    const bool deleted = policy->meta.deletion_timestamp.has_value();
    const bool wanted =
        reverts && (deleted ? used : used || (labels && pass.s.settings.mode_of(*policy) != PolicyMode::observe));
    if (has == wanted || (!has && (deleted || observes))) continue;
    // A DaemonSet can be missing for a while: these nodes are reverted once they are served again.
    if (deleted && reverts && !unserved_with_label_of(pass, name).empty()) continue;
    // Nodes that are not known might still have its label.
    if (!wanted && (!pass.s.world.unsynced_namespaces.empty() || !nodes_of_unknown_owner(pass).empty())) continue;
    PatchFinalizers patch{policy_ref(*policy), policy->finalizers, policy->meta.resource_version};
    std::erase(patch.finalizers, kRevertFinalizer);
    if (wanted) patch.finalizers.emplace_back(kRevertFinalizer);
    pass.add(
        std::move(patch), wanted ? "RevertFirst" : "Reverted",
        wanted ? "the labels of its nodes are reverted before the policy is deleted" : "none of its labels is left");
  }
}

}  // namespace gso
