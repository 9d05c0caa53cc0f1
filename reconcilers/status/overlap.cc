#include "reconcilers/status/overlap.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <string_view>

#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/node/assess.h"

namespace gso {
namespace {

// Why `winner` comes before `loser`, by the order of policies_in_order().
std::string_view why_it_comes_first(const SharingPolicy& winner, const SharingPolicy& loser) {
  if (winner.priority > loser.priority) return "its priority is higher";
  if (winner.meta.creation_timestamp < loser.meta.creation_timestamp) return "it is older";
  return "priority and age are equal, and its name sorts first";
}

std::string why_it_governs(const World& world, const FleetIndex::Impl& index, const std::string& governing,
                           const SharingPolicy& policy) {
  if (policy.meta.deletion_timestamp) return fmt::format("policy {} is being deleted", policy.meta.name);
  const SharingPolicy& winner = index.policy(world, governing);
  const std::string order(why_it_comes_first(winner, policy));
  if (!index.held_policies.contains(governing)) return order;
  const std::string stops = stops_of(winner);
  return fmt::format("it is deleted, but its stop is still in effect{}, and {}",
                     stops.empty() ? std::string() : fmt::format(" ({})", stops), order);
}

// `others`: the policies that govern nodes which `policy` selects, with their number.
std::string text_of(const World& world, const FleetIndex::Impl& index, const SharingPolicy& policy,
                    const std::map<std::string, std::int64_t>& others) {
  std::string out;
  for (const auto& [governing, count] : others) {
    out += fmt::format("{}{} of the selected nodes {} governed by ", out.empty() ? "" : "; ", count,
                       count == 1 ? "is" : "are");
    out += governing.empty() ? "no policy"
                             : fmt::format("policy {}: {}", governing, why_it_governs(world, index, governing, policy));
  }
  return out;
}

}  // namespace

std::string overlap_text(const World& world, const FleetIndex::Impl& index, const SharingPolicy& policy) {
  const std::string& name = policy.meta.name;
  std::map<std::string, std::int64_t> others;
  for (auto it = index.overlaps.lower_bound({name, ""}); it != index.overlaps.end() && it->first.first == name; ++it)
    others.emplace(it->first.second, it->second);
  return text_of(world, index, policy, others);
}

std::string other_governors_text(const World& world, const FleetIndex::Impl& index, const SharingPolicy& policy) {
  std::map<std::string, std::int64_t> others;
  for (const auto& [name, indexed] : index.nodes) {
    const Node* node = indexed.assessment ? world.nodes.find(name) : nullptr;
    if (node == nullptr || indexed.assessment->policy == policy.meta.name || !policy_selects(policy, *node)) continue;
    ++others[std::string(indexed.assessment->policy.view())];
  }
  return text_of(world, index, policy, others);
}

}  // namespace gso
