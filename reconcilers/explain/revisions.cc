#include "reconcilers/explain/revisions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

#include "reconcilers/model/json_access.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/reasons/names.h"

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
    const auto text = key_text(world.configmaps.find(installation.config_map_key()), key);
    return text ? index.profiles.compile(*text)->revision : std::string();
  }
  return {};
}

std::string text_on_record(const World& world, const FleetRecord* record, const std::string& config_map,
                           const std::string& revision) {
  if (record != nullptr) {
    if (const auto kept = record->texts.find(revision); kept != record->texts.end()) return kept->second;
  }
  for (const SharingRollout* rollout : newest_rollouts(world))
    if (rollout->to_revision == revision && rollout->config_map == config_map && !rollout->profile.empty())
      return rollout->profile;
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

namespace {

std::string or_unset(const std::string& value) {
  return value.empty() ? "unset" : value;
}

}  // namespace

void learn_texts(const World& world, const FleetRecord* record, ProfileCache& texts) {
  for (const auto& [key, config_map] : world.configmaps.all()) {
    for (const auto& [name, text] : config_map->data) {
      const bool profile = text != nullptr && (reads_like_profile(*text) || text->starts_with("version:"));
      if (profile) (void)texts.compile(*text);
    }
  }
  for (const auto& [key, rollout] : world.rollouts.all())
    if (!rollout->profile.empty()) (void)texts.compile(rollout->profile);
  (void)texts.compile("");  // Of nodes without a profile.
  if (record == nullptr) return;
  for (const auto& [revision, text] : record->texts) (void)texts.compile(text);
}

std::vector<RevisionChange> revision_changes(const World& world, const std::vector<NodeDifference>& differences,
                                             const ProfileCache& texts) {
  std::map<std::tuple<std::string, std::string, std::string>, RevisionChange> groups;
  for (const NodeDifference& difference : differences) {
    const Node* node = world.nodes.find(difference.node);
    const bool loses = difference.blocked.code == kNodesWouldBreak;  // Its GPUs, and has no revision then.
    if (difference.leaves || node == nullptr) continue;
    if (!loses && (!difference.blocked.code.empty() || difference.to.empty())) continue;
    AmountChanges amounts;
    count_amounts(*node, difference.serves, amounts);
    if (loses && amounts.empty()) continue;
    RevisionChange& change = groups[{difference.profile, difference.from, difference.to}];
    for (const auto& [amount, nodes] : amounts) change.amounts[amount] += nodes;
  }
  std::vector<RevisionChange> out;
  for (auto& [group, change] : groups) {
    std::tie(change.profile, change.from, change.to) = group;
    const ProfilePtr before = texts.by_revision(change.from);
    const ProfilePtr after = texts.by_revision(change.to);
    change.known = before != nullptr && after != nullptr;
    if (change.known) change.fields = profile_changes(before->profile(), after->profile());
    out.push_back(std::move(change));
  }
  return out;
}

std::string describe(const RevisionChange& change) {
  std::vector<std::string> parts;
  for (const FieldChange& field : change.fields)
    parts.push_back(fmt::format("{} {} -> {}", field.field, or_unset(field.before), or_unset(field.after)));
  if (!change.known && change.from != change.to && !change.to.empty())
    parts.push_back(
        fmt::format("the text of {} is not on record", change.from.empty() ? "what runs now" : change.from));
  if (change.known && change.fields.empty()) parts.emplace_back("no field changes");
  for (std::string& amount : describe(change.amounts)) parts.push_back(std::move(amount));
  return fmt::format("{}: {}", change.profile, fmt::join(parts, "; "));
}

}  // namespace gso
