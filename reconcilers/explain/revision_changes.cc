#include "reconcilers/explain/revision_changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <tuple>

namespace gso {

namespace {

std::string or_unset(const std::string& value) {
  return value.empty() ? "unset" : value;
}

using AmountKey = std::tuple<std::string, std::int64_t, std::int64_t>;  // Resource, before, after.

void count_amounts(const Node& node, const NodeDifference& difference, std::map<AmountKey, std::int64_t>& out) {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> amounts;
  for (const auto& [resource, count] : node.capacity) {
    if (resource.view().starts_with("nvidia.com/")) amounts[std::string(resource.view())].first = count;
  }
  for (const auto& [resource, count] : difference.serves) amounts[resource].second = count;
  for (const auto& [resource, counts] : amounts) {
    if (counts.first != counts.second) ++out[{resource, counts.first, counts.second}];
  }
}

}  // namespace

void learn_texts(const World& world, const FleetRecord* record, ProfileCache& texts) {
  for (const auto& [key, config_map] : world.configmaps.all()) {
    for (const auto& [name, text] : config_map->data) {
      const bool profile = text != nullptr && (reads_like_profile(*text) || text->starts_with("version:"));
      if (profile) (void)texts.compile(*text);
    }
  }
  for (const auto& [key, rollout] : world.rollouts.all()) {
    if (!rollout->profile.empty()) (void)texts.compile(rollout->profile);
  }
  if (record == nullptr) return;
  for (const auto& [revision, text] : record->texts) (void)texts.compile(text);
}

std::vector<RevisionChange> revision_changes(const World& world, const std::vector<NodeDifference>& differences,
                                             const ProfileCache& texts) {
  std::map<std::tuple<std::string, std::string, std::string>, std::map<AmountKey, std::int64_t>> groups;
  for (const NodeDifference& difference : differences) {
    const Node* node = world.nodes.find(difference.node);
    if (!difference.blocked.empty() || difference.leaves || difference.to.empty() || node == nullptr) continue;
    count_amounts(*node, difference, groups[{difference.profile, difference.from, difference.to}]);
  }
  std::vector<RevisionChange> out;
  for (const auto& [group, amounts] : groups) {
    RevisionChange& change = out.emplace_back();
    std::tie(change.profile, change.from, change.to) = group;
    const ProfilePtr before = texts.by_revision(change.from);
    const ProfilePtr after = texts.by_revision(change.to);
    change.known = before != nullptr && after != nullptr;
    if (change.known) change.fields = profile_changes(before->profile(), after->profile());
    for (const auto& [amount, nodes] : amounts)
      change.amounts.push_back({std::get<0>(amount), std::get<1>(amount), std::get<2>(amount), nodes});
  }
  return out;
}

std::string describe(const RevisionChange& change) {
  std::vector<std::string> parts;
  for (const FieldChange& field : change.fields)
    parts.push_back(fmt::format("{} {} -> {}", field.field, or_unset(field.before), or_unset(field.after)));
  if (!change.known && change.from != change.to)
    parts.push_back(
        fmt::format("the text of {} is not on record", change.from.empty() ? "what runs now" : change.from));
  if (change.known && change.fields.empty()) parts.emplace_back("no field changes");
  for (const RevisionChange::Amount& amount : change.amounts) {
    parts.push_back(fmt::format("{} {} -> {} on {}", amount.resource, amount.before, amount.after,
                                amount.nodes == 1 ? "one node" : fmt::format("each of {} nodes", amount.nodes)));
  }
  return fmt::format("{}: {}", change.profile, fmt::join(parts, "; "));
}

}  // namespace gso
