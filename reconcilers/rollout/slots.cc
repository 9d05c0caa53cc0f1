#include "reconcilers/rollout/slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "reconcilers/kai/index.h"
#include "reconcilers/kai/planners.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/profile/profile.h"
#include "reconcilers/rollout/canary.h"

namespace gso {

// --- Busy nodes, from the timers of earlier passes and the listings of nodes in a change.

BusyNodes::BusyNodes(Pass& pass) : pass_(pass) {
  for (const SeenNode& seen : seen_nodes(pass, Timer::busy))
    if (seen.assessment.phase == Phase::pending && pass.s.now - seen.since < kKnown) note(seen.name, seen.assessment);
  for (const SeenNode& seen : seen_nodes(pass, Timer::draining))
    if (waits(seen.name, seen.assessment)) ++waiting_[std::string(seen.assessment.policy.view())];
}

void BusyNodes::note(const std::string& node, const NodeAssessment& a) {
  known_.insert(node);
  pass_.renew({Timer::busy, node, a.target}, kKnown);
}

std::int64_t BusyNodes::waiting() const {
  std::int64_t out = 0;
  for (const auto& [policy, count] : waiting_) out += count;
  return out;
}

bool BusyNodes::waits(const std::string& node, const NodeAssessment& a) const {
  if (!a.in_change() || !a.is_unavailable()) return false;
  // The node has not been listed since this replica became the leader.
  if (!pass_.s.consumers.contains(node)) return true;
  return !drained(Drain::idle, use_of(pass_.s, node), a);
}

std::string Slots::exhausted(const RolloutView& rollout, const NodeAssessment& a) const {
  const std::string product(a.product.view());
  return exhausted_budget(*pass_, rollout.key, rollout.profile_rollout, product, taken_.of(rollout.key, product))
      .message;
}

void SlotCounts::add(const RolloutKey& key, const std::string& product) {
  ++cluster_;
  ++policies_[key.policy];
  ++groups_[{key, product}];
}

SlotsTaken SlotCounts::of(const RolloutKey& key, const std::string& product) const {
  const auto policy = policies_.find(key.policy);
  const auto group = groups_.find({key, product});
  return {cluster_, policy == policies_.end() ? 0 : policy->second, group == groups_.end() ? 0 : group->second};
}

void Slots::count_changes() const {
  if (changing_) return;
  changing_.emplace();
  for (const auto& [name, node, a] : nodes_in(*pass_, Bucket::changing)) {
    const RolloutKey key = pass_->index.rollout_key_of(a);
    const std::string product(a.product.view());
    changing_->add(key, product);
    if (!a.change->served) repaired_.add(key, product);
  }
}

bool Slots::has_room(const RolloutView& rollout, const NodeAssessment& a) const {
  const RolloutKey& key = rollout.key;
  const std::string product(a.product.view());
  const BudgetCount group = count_of(rollout.profile_rollout.groups.at(product).tally);
  if (!is_busy(a)) return free(key, product, group);
  const bool repair = is_out_of_service(a);
  if (repair && (rollout.verified || rollout.profile_rollout.tally.settled > 0)) return true;
  count_changes();
  SlotsTaken held = (repair ? repaired_ : *changing_).of(key, product);
  const SlotsTaken now = (repair ? repairs_begun_ : begun_).of(key, product);
  std::ranges::transform(held, now, held.begin(), std::plus());
  return has_room_for(key, group, held);
}

bool Slots::has_room_beside(const RolloutKey& key, const BudgetCount& group, std::int64_t in_change) const {
  return has_room_for(key, group, {in_change, in_change, in_change});
}

bool Slots::has_room_for(const RolloutKey& key, const BudgetCount& group, const SlotsTaken& held) const {
  BudgetCounts counts = budget_counts(*pass_, key.policy, group);
  for (BudgetCount& budget : counts) budget.busy = 0;
  return has_slot(*pass_, key.policy, counts, held);
}

bool Slots::free(const RolloutKey& key, const std::string& product, const BudgetCount& group) const {
  return has_slot(*pass_, key.policy, budget_counts(*pass_, key.policy, group), taken_.of(key, product));
}

void Slots::take(const RolloutKey& key, const NodeAssessment& a) {
  const std::string product(a.product.view());
  begun_.add(key, product);
  if (is_out_of_service(a)) repairs_begun_.add(key, product);
  if (!is_busy(a)) taken_.add(key, product);
}

void Slots::take(const RolloutKey& key, const std::string& product) {
  taken_.add(key, product);
}

bool Slots::fit_ever(const RolloutView& rollout, const GangPeers& peers) const {
  std::map<std::string, std::int64_t> needs;
  std::int64_t all = 0;
  for (const std::string& peer : peers.nodes) {
    const NodeAssessment& a = *pass_->index.find(peer);
    if (is_out_of_service(a)) continue;  // Needs no slot.
    ++needs[std::string(a.product.view())];
    ++all;
  }
  const auto [cluster, policy, group] = sizes(rollout.key);
  return all <= policy && all <= cluster && std::ranges::all_of(needs, [&](const auto& need) {
           return need.second <= rollout.policy.rollout.max_unavailable_per_group.of(
                                     rollout.profile_rollout.groups.at(need.first).tally.total);
         });
}

std::int64_t Slots::most_draining(Budget budget, const RolloutKey& key) const {
  return std::max<std::int64_t>(1, (sizes(key)[static_cast<std::size_t>(budget)] + 1) / 2);
}

std::optional<Budget> Slots::without_waiting_room(const RolloutKey& key, std::int64_t of_policy,
                                                  std::int64_t of_cluster) const {
  if (of_policy >= most_draining(Budget::policy, key)) return Budget::policy;
  return of_cluster >= most_draining(Budget::cluster, key) ? std::optional(Budget::cluster) : std::nullopt;
}

PerBudget<std::int64_t> Slots::sizes(const RolloutKey& key) const {
  return budget_sizes(*pass_, key.policy, budget_counts(*pass_, key.policy, {}));
}

std::optional<KaiHindrance> kai_hindrance(Pass& pass, const std::string& node, const NodeAssessment& a) {
  constexpr std::int64_t kLookupsPerNode = 16;  // Pods that are looked up in one pass.
  if (!excludes_kai(a.profile && a.profile->valid ? &a.profile->profile() : nullptr)) return std::nullopt;
  const KaiWorld& kai = pass.s.world.kai;
  std::int64_t asks = kLookupsPerNode;
  const UnreservedConsumers unreserved = unreserved_consumers(pass.s, pass.index.kai, node, asks, pass.plan.kai_wanted);
  std::string use = pass.index.kai.use_of(node);
  if (use.empty() && !unreserved.pods.empty())
    use = fmt::format("fraction pod {}, without a reservation", *unreserved.pods.begin());
  if (kai.use_known && use.empty() && unreserved.known) return std::nullopt;
  if (kai.use_known && !use.empty()) return KaiHindrance{true, fmt::format("KAI shares the node's GPUs ({})", use)};
  pass.look_again_in(std::chrono::seconds(1));
  const std::string why =
      kai.use_known ? std::string("the pods that KAI has bound are being looked up") : kai.incomplete;
  return KaiHindrance{
      false, fmt::format("it is not known yet whether KAI shares the node's GPUs{}{}", why.empty() ? "" : ": ", why)};
}

bool report_kai_hindrance(Pass& pass, const std::string& node, const NodeAssessment& a) {
  const auto hindrance = kai_hindrance(pass, node, a);
  if (!hindrance) return false;
  const Finding found = finding_of(node, *hindrance);
  pass.finding(found.severity, found.object, found.why.code, found.why.message);
  return true;
}

bool is_free_to_begin(const NodeAssessment& assessment) {
  return assessment.ready && !assessment.is_held();
}

Exhausted exhausted_of(const RolloutView& rollout, const std::string& product) {
  return exhausted_budget(rollout.pass, rollout.key, rollout.profile_rollout, product, {});
}

}  // namespace gso
