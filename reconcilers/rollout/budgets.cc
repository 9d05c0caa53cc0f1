#include "reconcilers/rollout/budgets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <ranges>
#include <utility>

#include "reconcilers/model/message_text.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/partitioning/partitioning.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {

namespace {

// A budget that has no room for one more node.
struct FullBudget {
  Budget budget = Budget::cluster;
  std::int64_t busy = 0;
  std::int64_t most = 0;
  std::set<std::string> holders;  // Of its slots.
};

std::size_t index_of(Budget budget) {
  return static_cast<std::size_t>(budget);
}

bool has_room(const BudgetCount& count, std::int64_t taken, std::int64_t most) {
  return count.busy + taken + 1 <= most;
}

const SliceNodes& slices_of(const Pass& pass) {
  static const SliceNodes none;
  return pass.rollouts == nullptr ? none : pass.rollouts->slices;
}

// Nodes of standalone MPS daemons that the policy governs and no plugin serves; null: none.
const UnservedNodes* unserved_of(const Pass& pass, std::string_view policy) {
  const auto found = pass.index.unserved.find(policy);
  return found == pass.index.unserved.end() ? nullptr : &found->second;
}

// The nodes that hold the slots of a budget: those out of service or in a change, or whose change cannot be read.
std::set<std::string> holders(const Pass& pass, Budget budget, const RolloutKey& key, const std::string& product) {
  std::set<std::string> names;
  const UnservedNodes* unserved = unserved_of(pass, key.policy);
  if (budget == Budget::policy && unserved != nullptr) names = unserved->busy;
  if (budget == Budget::cluster) names = slices_of(pass).moving;
  for (const std::string& name : pass.index.nodes_in(Bucket::busy)) {
    const NodeAssessment* a = pass.index.find(name);
    const bool of_policy = a != nullptr && a->policy == key.policy;
    const bool of_group = of_policy && a->product == product && pass.index.is_of(*a, key);
    if (budget == Budget::cluster || of_group || (budget == Budget::policy && of_policy)) names.insert(name);
  }
  return names;
}

// In the order of Budget.
std::vector<FullBudget> full_budgets(const Pass& pass, const RolloutKey& key, const std::string& product,
                                     const BudgetCounts& counts, const SlotsTaken& taken) {
  const PerBudget<std::int64_t> sizes = budget_sizes(pass, key.policy, counts);
  std::vector<FullBudget> out;
  for (const Budget budget : {Budget::cluster, Budget::policy, Budget::group}) {
    const std::size_t at = index_of(budget);
    if (!has_room(counts[at], taken[at], sizes[at]))
      out.push_back({budget, counts[at].busy + taken[at], sizes[at], holders(pass, budget, key, product)});
  }
  return out;
}

std::vector<FullBudget> full_budgets(const Pass& pass, const RolloutKey& key, const ProfileRollout& profile_rollout,
                                     const std::string& product, const SlotsTaken& taken) {
  const BudgetCount group = count_of(profile_rollout.groups.at(product).tally);
  return full_budgets(pass, key, product, budget_counts(pass, key.policy, group), taken);
}

// Those holders that the operator does not change, and why each of them holds its slot: "t02 (NotReady)".
std::vector<std::string> out_of_service(const Pass& pass, const std::set<std::string>& nodes) {
  std::vector<std::string> out;
  for (const std::string& name : nodes) {
    if (slices_of(pass).moving.contains(name)) {
      out.push_back(name + " (its slices change)");
      continue;
    }
    const SlotHold hold = slot_hold(pass.s.world, pass.index, name);
    if (hold != SlotHold::in_change) out.push_back(fmt::format("{} ({})", name, describe(hold)));
  }
  return out;
}

// "1 of 1 slot", "2 of 1 slots"
std::string slots_text(const FullBudget& full) {
  return fmt::format("{} of {} {}", full.busy, full.most, std::max(full.busy, full.most) == 1 ? "slot" : "slots");
}

constexpr std::string_view kSettings[] = {kClusterBudget, kPolicyBudget, kGroupBudget};  // In the order of Budget.

// "policy default (maxUnavailable)"
std::string name_of(Budget budget, const RolloutKey& key, const std::string& product) {
  const std::string_view setting = kSettings[index_of(budget)];
  if (budget == Budget::cluster) return fmt::format("the cluster (--{})", setting);
  if (budget == Budget::policy) return fmt::format("policy {} ({})", key.policy, setting);
  return product.empty() ? fmt::format("the group of unknown product ({})", setting)
                         : fmt::format("group {} ({})", product, setting);
}

// "a01, a02 hold 2 of 2 slots"
std::string held_text(const FullBudget& full) {
  return fmt::format("{} hold{} {}", first_names({full.holders.begin(), full.holders.end()}),
                     full.holders.size() == 1 ? "s" : "", slots_text(full));
}

Exhausted exhausted(const Pass& pass, const RolloutKey& key, const std::string& product, const SlotsTaken& taken,
                    const std::vector<FullBudget>& budgets) {
  if (budgets.empty()) return {};
  std::vector<std::string> clauses;
  Facts about;
  std::set<std::string> nodes;
  for (const FullBudget& full : budgets) {
    const std::string what = name_of(full.budget, key, product);
    const bool known = !full.holders.empty();
    const std::size_t before = about.budgets.size();
    about.budgets.emplace_back(kSettings[index_of(full.budget)]);
    nodes.insert(full.holders.begin(), full.holders.end());
    if (before > 0) {
      clauses.push_back(
          fmt::format("{}{}: {}", before == 1 ? "also full: " : "", what,
                      known ? held_text(full) : fmt::format("{} of {} slots are in use", full.busy, full.most)));
      continue;
    }
    for (const std::string& name : full.holders | std::views::take(kMostNames)) about.holders.push_back(name);
    clauses.push_back(known ? fmt::format("{}: {} of {}", kNoSlot, held_text(full), what)
                            : fmt::format("{}: {} of {} slots of {} are in use", kNoSlot, full.busy, full.most, what));
    const std::int64_t starts = taken[index_of(full.budget)];
    if (starts <= 0) continue;
    const std::string now = fmt::format("{} {} now", starts, starts == 1 ? "starts" : "start");
    if (known) clauses.push_back(now);
    if (!known) clauses.back() += ": " + now;
  }
  const std::vector<std::string> kept = out_of_service(pass, nodes);
  if (!kept.empty()) clauses.push_back(fmt::format("out of service: {}", first_names(kept)));
  return {{kBudgetExhausted, fmt::format("{}", fmt::join(clauses, "; ")), std::move(about)}, std::move(clauses)};
}

}  // namespace

SlotHold slot_hold(const World& world, const Index& index, const std::string& name) {
  const Node* node = world.nodes.find(name);
  const NodeAssessment* a = index.find(name);
  if (node == nullptr) return SlotHold::none;
  // A node of a standalone daemon that no plugin serves has no change of a profile.
  const bool served = a != nullptr && a->phase != Phase::unmanaged;
  if (served && !is_busy(*a)) return SlotHold::none;
  if (served && a->is_unreadable()) return SlotHold::unreadable;
  if (served && a->change != nullptr) return a->change->failed ? SlotHold::failed : SlotHold::in_change;
  if (!node->ready) return SlotHold::not_ready;
  if (node->unschedulable && !is_cordoned_by_operator(*node)) return SlotHold::cordoned;
  if (!served) return SlotHold::in_change;
  return node->unschedulable ? SlotHold::cordoned_by_operator : SlotHold::no_gpus;
}

std::string_view describe(SlotHold hold) {
  constexpr std::string_view kTexts[] = {"not known",
                                         "in change",
                                         "failed",
                                         "its change cannot be read",
                                         "NotReady",
                                         "cordoned, not by the operator",
                                         "cordoned by the operator, for a change that did not finish",
                                         "offers no GPUs"};  // In the order of SlotHold.
  return kTexts[static_cast<std::size_t>(hold)];
}

BudgetCount count_of(const Tally& tally) {
  return {tally.total, tally.busy};
}

SliceNodes slice_nodes(const World& world, const Index& index, const LabelledNodes& labelled) {
  SliceNodes out;
  for (const PartitionedNode& node : labelled.nodes) {
    const auto known = index.nodes.find(node.name);
    const bool counted = known != index.nodes.end() && known->second.share.counts.total > 0;
    if (counted) continue;
    ++out.total;
    // What is being written might be the move of its label, which the stores do not show yet.
    const bool moves = node.standing.in_progress || world.nodes_being_written.contains(node.name);
    if (moves) out.moving.insert(node.name);
  }
  return out;
}

BudgetCount cluster_count(const Index& index, const SliceNodes& slices) {
  return {index.cluster.total + slices.total, index.cluster.busy + std::ssize(slices.moving)};
}

BudgetCounts budget_counts(const Pass& pass, const std::string& policy, const BudgetCount& group) {
  BudgetCount of_policy;
  const auto served = pass.index.policies.find(policy);
  if (served != pass.index.policies.end()) of_policy = count_of(served->second);
  if (const UnservedNodes* unserved = unserved_of(pass, policy)) {
    of_policy.total += unserved->total;
    of_policy.busy += std::ssize(unserved->busy);
  }
  return {cluster_count(pass.index, slices_of(pass)), of_policy, group};
}

PerBudget<std::int64_t> budget_sizes(const Pass& pass, const std::string& policy, const BudgetCounts& counts) {
  const auto& [cluster, of_policy, group] = counts;
  const RolloutSpec& rollout = pass.index.policy(pass.s.world, policy).rollout;
  return {pass.s.settings.cluster_max_unavailable.of(cluster.total), rollout.max_unavailable.of(of_policy.total),
          rollout.max_unavailable_per_group.of(group.total)};
}

bool has_slot(const Pass& pass, const std::string& policy, const BudgetCounts& counts, const SlotsTaken& taken) {
  const PerBudget<std::int64_t> sizes = budget_sizes(pass, policy, counts);
  return std::ranges::all_of(std::views::iota(std::size_t{0}, sizes.size()),
                             [&](std::size_t i) { return has_room(counts[i], taken[i], sizes[i]); });
}

Exhausted exhausted_budget(const Pass& pass, const RolloutKey& key, const ProfileRollout& profile_rollout,
                           const std::string& product, const SlotsTaken& taken) {
  return exhausted(pass, key, product, taken, full_budgets(pass, key, profile_rollout, product, taken));
}

Exhausted exhausted_cluster(const Pass& pass, std::int64_t started) {
  const SlotsTaken taken{started, 0, 0};
  std::vector<FullBudget> full = full_budgets(pass, {}, {}, budget_counts(pass, {}, {}), taken);
  std::erase_if(full, [](const FullBudget& one) { return one.budget != Budget::cluster; });
  const bool by_slices = started == 0 && !full.empty() && full.front().holders == slices_of(pass).moving;
  return by_slices ? Exhausted() : exhausted(pass, {}, {}, taken, full);
}

std::set<std::string> holders_of_full_budgets(const Pass& pass, const RolloutKey& key,
                                              const ProfileRollout& profile_rollout, const std::string& product) {
  std::set<std::string> out;
  for (FullBudget& full : full_budgets(pass, key, profile_rollout, product, {})) out.merge(full.holders);
  return out;
}

std::set<std::string> holders_of_awaited_slots(const Pass& pass, const RolloutKey& key,
                                               const ProfileRollout& profile_rollout) {
  std::set<std::string> out;
  for (const auto& [product, group] : profile_rollout.groups)
    if (!group.pending.empty()) out.merge(holders_of_full_budgets(pass, key, profile_rollout, product));
  return out;
}

}  // namespace gso
