#include "reconcilers/rollout/rollout_object.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>

#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/policy.h"
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

namespace {

// Its switches in the record; null: none was on.
const RecordedSwitches* recorded(const Index& index, const SharingRollout& rollout) {
  return index.record ? index.record->rollout(rollout.policy, rollout.config_map, rollout.key, rollout.to_revision)
                      : nullptr;
}

}  // namespace

bool says_left(const SharingRollout& rollout) {
  // Few rollouts have the condition, and every pass asks for all of them: the whole status is parsed only where it is.
  if (!std::string_view(rollout.status_json).contains(kCurrentCondition)) return false;
  return !text_at(condition_in(parse_status(rollout.status_json), kCurrentCondition), "status").empty();
}

bool was_left(const Index& index, const SharingRollout& rollout) {
  const RecordedSwitches* entry = recorded(index, rollout);
  return entry != nullptr ? entry->left : says_left(rollout);
}

namespace {

// When it ended, according to its status; nullopt if it has not ended, or if the time of its abort is unknown: an abort
// then applies to every template. If an object has no status (lost in a restore from a backup, or not written yet), or
// says that it is Completed and not since when, the operator assumes that it ended right after its creation: its
// approval then does not apply to a template that is newer than the object.
std::optional<WallTime> ended_at(const SharingRollout& rollout) {
  const WallTime at_once = rollout.meta.creation_timestamp + std::chrono::seconds(1);
  if (rollout.phase.empty()) return at_once;
  const nlohmann::json status = parse_status(rollout.status_json);
  if (rollout.phase == "Completed") return k8s::parse_rfc3339(text_at(status, "completedAt")).value_or(at_once);
  if (rollout.phase != "Failed") return std::nullopt;
  const std::string since = since_when(status, rollout.aborted ? kAbortedCondition : "Progressing");
  return k8s::parse_rfc3339(since);
}

// It has ended, and nodes wait for pods of a template that arrived later (updateStrategy OnDelete). A template belongs
// to the rollout itself if nodes still wait for it at the end (aborted), or if nodes get it late.
bool ended_before_template(const Index& index, const ProfileRollout& profile_rollout, const SharingRollout& rollout) {
  if (profile_rollout.tally.new_template == 0) return false;
  // The status is lost, and the record has the switches: the templates that they were set for decide
  // (is_of_other_templates).
  if (rollout.phase.empty() && recorded(index, rollout) != nullptr) return false;
  const std::optional<WallTime> ended = ended_at(rollout);
  if (!ended) return false;
  // Creation times are whole seconds. An abort in the same second applies to that template, too.
  const WallTime oldest = rollout.aborted ? *ended + std::chrono::seconds(1) : *ended;
  const bool later =
      std::ranges::any_of(index.discovery.installations[profile_rollout.installation].operands,
                          [&](const Operand& operand) { return operand.on_delete && operand.newest_since >= oldest; });
  // A template that returns keeps its first creation time; but then no node is settled on it.
  const bool nobody_settled =
      std::ranges::all_of(profile_rollout.groups, [](const auto& group) { return group.second.tally.settled == 0; });
  return later || (rollout.phase == "Completed" && nobody_settled);
}

bool waits(const ProfileRollout& profile_rollout, const SharingRollout& rollout) {
  return profile_rollout.tally.of(Phase::pending) > 0 && !is_undone(rollout);
}

}  // namespace

std::map<std::string, std::string> templates_of(const PluginInstallation& installation) {
  std::map<std::string, std::string> out;
  for (const Operand& operand : installation.operands) {
    if (!operand.newest_hash.empty()) out.emplace(k8s::to_string(operand.key), operand.newest_hash);
  }
  return out;
}

// Neither names of objects nor hashes contain these characters.
std::string templates_text(const PluginInstallation& installation) {
  std::string out;
  for (const auto& [daemonset, hash] : templates_of(installation)) {
    out += fmt::format("{}{}={}", out.empty() ? "" : ",", daemonset, hash);
  }
  return out;
}

namespace {

bool has_other_templates(const PluginInstallation& installation, const std::map<std::string, std::string>& then) {
  return std::ranges::any_of(installation.operands, [&](const Operand& operand) {
    if (!operand.on_delete || operand.newest_hash.empty()) return false;
    const auto known = then.find(k8s::to_string(operand.key));
    return known != then.end() && known->second != operand.newest_hash;
  });
}

}  // namespace

bool has_other_templates(const PluginInstallation& installation, std::string_view then) {
  std::map<std::string, std::string> templates;
  while (!then.empty()) {
    const std::string_view entry = then.substr(0, then.find(','));
    then.remove_prefix(std::min(then.size(), entry.size() + 1));
    const std::size_t middle = entry.find('=');
    if (middle != std::string_view::npos) templates.emplace(entry.substr(0, middle), entry.substr(middle + 1));
  }
  return has_other_templates(installation, templates);
}

bool is_of_other_templates(const Index& index, const ProfileRollout& profile_rollout, const SharingRollout& rollout) {
  const RecordedSwitches* entry = recorded(index, rollout);
  if (entry == nullptr || entry->paused || rollout.paused) return false;
  if (!waits(profile_rollout, rollout) || profile_rollout.tally.new_template == 0) return false;
  return has_other_templates(index.discovery.installations[profile_rollout.installation], entry->templates);
}

bool ended_earlier(const Index& index, const ProfileRollout& profile_rollout, const SharingRollout& rollout) {
  return waits(profile_rollout, rollout) &&
         (was_left(index, rollout) || ended_before_template(index, profile_rollout, rollout));
}

bool begins_anew(const Index& index, const ProfileRollout& profile_rollout, const SharingRollout& rollout) {
  return ended_earlier(index, profile_rollout, rollout) || is_of_other_templates(index, profile_rollout, rollout);
}

}  // namespace gso
