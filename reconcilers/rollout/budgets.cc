#include "reconcilers/rollout/budgets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <ranges>
#include <set>
#include <utility>
#include <vector>

#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/partitioning/partitioning.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {

NodePolicies::NodePolicies(const Index& index, const World& world)
    : index_(&index), world_(&world), policies_(policies_in_order(world, index.built_in_policy, index.held_policies)) {}

const SharingPolicy& NodePolicies::of(const Node& node) const {
  if (const NodeAssessment* a = index_->find(node.meta.name)) return index_->policy(*world_, a->policy.view());
  const SharingPolicy* governs = governing_policy(policies_, node);
  return governs != nullptr ? *governs : index_->built_in_policy;
}

UnservedNodes::UnservedNodes(const Pass& pass) {
  std::optional<NodePolicies> policies;
  for (const std::string& name : pass.index.nodes_in(Bucket::standalone_mps)) {
    const Node* node = pass.s.world.nodes.find(name);
    const NodeAssessment* a = pass.index.find(name);
    const bool served = a != nullptr && a->phase != Phase::unmanaged;
    if (node == nullptr || served) continue;
    if (!policies) policies.emplace(pass.index, pass.s.world);
    Nodes& out = policies_[policies->of(*node).meta.name];
    ++out.total;
    if (pass.index.nodes_in(Bucket::busy).contains(name)) out.busy.insert(name);
  }
}

const UnservedNodes::Nodes& UnservedNodes::of(std::string_view policy) const {
  static const Nodes none;
  const auto found = policies_.find(policy);
  return found == policies_.end() ? none : found->second;
}

std::int64_t UnservedNodes::total(std::string_view policy) const {
  return of(policy).total;
}

const std::set<std::string>& UnservedNodes::busy(std::string_view policy) const {
  return of(policy).busy;
}

namespace {

enum class Budget { none, cluster, policy, group };

struct Full {
  Budget budget = Budget::none;  // None: every budget has room.
  std::int64_t busy = 0;
  std::int64_t most = 0;
};

// The budgets that have no room for one more node, in that order; the others have no budget.
std::array<Full, 3> full_budgets(const Pass& pass, const RolloutSpec& rollout, const BudgetCounts& counts,
                                 const SlotsTaken& taken) {
  const auto& [cluster, policy, group] = counts;
  std::array<Full, 3> budgets{{
      {Budget::cluster, cluster.busy + taken.cluster, pass.s.settings.cluster_max_unavailable.of(cluster.total)},
      {Budget::policy, policy.busy + taken.policy, rollout.max_unavailable.of(policy.total)},
      {Budget::group, group.busy + taken.group, rollout.max_unavailable_per_group.of(group.total)},
  }};
  for (Full& budget : budgets) {
    if (budget.busy + 1 <= budget.most) budget.budget = Budget::none;
  }
  return budgets;
}

bool counts_in(const Index& index, Budget budget, const RolloutKey& key, const std::string& product,
               const NodeAssessment* a) {
  if (budget == Budget::cluster) return true;
  if (a == nullptr || a->policy != key.policy) return false;
  return budget == Budget::policy || (a->product == product && index.is_of(*a, key));
}

const SliceNodes& slices_of(const Pass& pass) {
  static const SliceNodes none;
  return pass.rollouts == nullptr ? none : pass.rollouts->slices;
}

// The nodes that hold the slots of a budget: those out of service or in a change, or whose change cannot be read.
std::set<std::string> holders(const Pass& pass, const UnservedNodes& unserved, Budget budget, const RolloutKey& key,
                              const std::string& product) {
  std::set<std::string> names;
  const Index& index = pass.index;
  if (budget == Budget::policy) names = unserved.busy(key.policy);
  if (budget == Budget::cluster) names = slices_of(pass).moving;
  for (const std::string& name : index.nodes_in(Bucket::busy)) {
    if (counts_in(index, budget, key, product, index.find(name))) names.insert(name);
  }
  return names;
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
std::string slots_text(const Full& full) {
  return fmt::format("{} of {} {}", full.busy, full.most, std::max(full.busy, full.most) == 1 ? "slot" : "slots");
}

// The names of a budget, and who holds its slots, for people.
struct FullText {
  std::string_view setting;
  std::string what;  // "policy default (maxUnavailable)"
  std::string held;  // "a01, a02 hold 2 of 2 slots"; if no node is known: "2 of 2 slots are in use".
  std::string now;   // "1 starts now"; empty: no node starts in this pass.
  std::set<std::string> nodes;
};

FullText text_of(const Pass& pass, const UnservedNodes& unserved, const RolloutKey& key, const std::string& product,
                 const SlotsTaken& taken, const Full& full) {
  const bool cluster = full.budget == Budget::cluster;
  const bool policy = full.budget == Budget::policy;
  const std::int64_t start_now = cluster ? taken.cluster : policy ? taken.policy : taken.group;
  FullText out;
  out.nodes = holders(pass, unserved, full.budget, key, product);
  out.setting = cluster ? kClusterBudget : policy ? kPolicyBudget : kGroupBudget;
  out.what = cluster           ? fmt::format("the cluster (--{})", out.setting)
             : policy          ? fmt::format("policy {} ({})", key.policy, out.setting)
             : product.empty() ? fmt::format("the group of unknown product ({})", out.setting)
                               : fmt::format("group {} ({})", product, out.setting);
  if (start_now > 0) out.now = fmt::format("{} {} now", start_now, start_now == 1 ? "starts" : "start");
  out.held = out.nodes.empty() ? fmt::format("{} of {} slots are in use", full.busy, full.most)
                               : fmt::format("{} hold{} {}", first_names({out.nodes.begin(), out.nodes.end()}),
                                             out.nodes.size() == 1 ? "s" : "", slots_text(full));
  return out;
}

// The first full budget; then the others, and at last which of their holders are out of service.
void add_first(const FullText& text, const Full& full, Exhausted& out) {
  if (text.nodes.empty()) {
    out.clauses.push_back(fmt::format("{}: {} of {} slots of {} are in use{}", kNoSlot, full.busy, full.most, text.what,
                                      text.now.empty() ? "" : ": " + text.now));
    return;
  }
  out.clauses.push_back(fmt::format("{}: {} of {}", kNoSlot, text.held, text.what));
  if (!text.now.empty()) out.clauses.push_back(text.now);
}

Exhausted exhausted(const Pass& pass, const std::vector<std::pair<FullText, Full>>& budgets) {
  Exhausted out;
  std::set<std::string> nodes;
  for (std::size_t i = 0; i < budgets.size(); ++i) {
    const auto& [text, full] = budgets[i];
    if (i == 0) {
      add_first(text, full, out);
      for (const std::string& name : text.nodes | std::views::take(kMostNames)) out.facts.holders.push_back(name);
    } else {
      out.clauses.push_back(fmt::format("{}{}: {}", i == 1 ? "also full: " : "", text.what, text.held));
    }
    out.facts.budgets.emplace_back(text.setting);
    nodes.insert(text.nodes.begin(), text.nodes.end());
  }
  const std::vector<std::string> kept = out_of_service(pass, nodes);
  if (!kept.empty()) out.clauses.push_back(fmt::format("out of service: {}", first_names(kept)));
  return out;
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

BudgetCounts budget_counts(const Pass& pass, const UnservedNodes& unserved, const std::string& policy,
                           const BudgetCount& group) {
  BudgetCounts out{cluster_count(pass.index, slices_of(pass)), {}, group};
  const auto served = pass.index.policies.find(policy);
  if (served != pass.index.policies.end()) out.policy = count_of(served->second);
  out.policy.total += unserved.total(policy);
  out.policy.busy += std::ssize(unserved.busy(policy));
  return out;
}

bool has_slot(const Pass& pass, const RolloutSpec& rollout, const BudgetCounts& counts, const SlotsTaken& taken) {
  return std::ranges::all_of(full_budgets(pass, rollout, counts, taken),
                             [](const Full& full) { return full.budget == Budget::none; });
}

std::string Exhausted::text() const {
  return fmt::format("{}", fmt::join(clauses, "; "));
}

Reason Exhausted::reason() const {
  return {kBudgetExhausted, text(), facts};
}

Exhausted exhausted_budget(const Pass& pass, const UnservedNodes& unserved, const RolloutKey& key,
                           const ProfileRollout& profile_rollout, const std::string& product, const SlotsTaken& taken) {
  const BudgetCounts counts =
      budget_counts(pass, unserved, key.policy, count_of(profile_rollout.groups.at(product).tally));
  std::vector<std::pair<FullText, Full>> out;
  for (const Full& full : full_budgets(pass, pass.index.policy(pass.s.world, key.policy).rollout, counts, taken)) {
    if (full.budget != Budget::none) out.emplace_back(text_of(pass, unserved, key, product, taken, full), full);
  }
  return exhausted(pass, out);
}

Exhausted exhausted_cluster(const Pass& pass, std::int64_t started) {
  const UnservedNodes unserved(pass);
  const SlotsTaken taken{started, 0, 0};
  const Full full = full_budgets(pass, {}, budget_counts(pass, unserved, {}, {}), taken).front();
  if (full.budget == Budget::none) return {};
  FullText text = text_of(pass, unserved, {}, {}, taken, full);
  if (started == 0 && text.nodes == slices_of(pass).moving) return {};
  return exhausted(pass, {{std::move(text), full}});
}

std::set<std::string> holders_of_full_budgets(const Pass& pass, const UnservedNodes& unserved, const RolloutKey& key,
                                              const ProfileRollout& profile_rollout, const std::string& product) {
  const BudgetCounts counts =
      budget_counts(pass, unserved, key.policy, count_of(profile_rollout.groups.at(product).tally));
  std::set<std::string> out;
  for (const Full& full : full_budgets(pass, pass.index.policy(pass.s.world, key.policy).rollout, counts, {})) {
    if (full.budget != Budget::none) out.merge(holders(pass, unserved, full.budget, key, product));
  }
  return out;
}

std::set<std::string> holders_of_awaited_slots(const Pass& pass, const RolloutKey& key,
                                               const ProfileRollout& profile_rollout) {
  const UnservedNodes unserved(pass);
  std::set<std::string> out;
  for (const auto& [product, group] : profile_rollout.groups) {
    if (!group.pending.empty()) out.merge(holders_of_full_budgets(pass, unserved, key, profile_rollout, product));
  }
  return out;
}

}  // namespace gso
