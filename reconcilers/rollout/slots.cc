#include "reconcilers/rollout/slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include "reconcilers/kai/index.h"
#include "reconcilers/kai/planners.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/profile/profile.h"
#include "reconcilers/rollout/budgets.h"
#include "reconcilers/rollout/canary.h"
#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {

// --- Busy nodes, from the timers of earlier passes and the listings of nodes in a change.

BusyNodes::BusyNodes(Pass& pass) : pass_(pass) {
  for (const SeenNode& seen : seen_nodes(pass, Timer::busy)) {
    if (seen.assessment.phase == Phase::pending && pass.s.now - seen.since < kKnown) {
      note(seen.name, seen.assessment);
    }
  }
  for (const SeenNode& seen : seen_nodes(pass, Timer::draining)) {
    if (waits(seen.name, seen.assessment)) ++waiting_[std::string(seen.assessment.policy.view())];
  }
}

void BusyNodes::note(const std::string& node, const NodeAssessment& a) {
  known_.insert(node);
  pass_.renew({Timer::busy, node, std::string(a.target.view())}, kKnown);
}

std::int64_t BusyNodes::waiting(const std::string& policy) const {
  const auto it = waiting_.find(policy);
  return it == waiting_.end() ? 0 : it->second;
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

namespace {

template <class Key>
std::int64_t taken(const std::map<Key, std::int64_t>& counts, const Key& key) {
  const auto it = counts.find(key);
  return it == counts.end() ? 0 : it->second;
}

std::int64_t half_of(std::int64_t slots) {
  return std::max<std::int64_t>(1, (slots + 1) / 2);
}

}  // namespace

std::string Slots::exhausted(const RolloutKey& key, const ProfileRollout& profile_rollout,
                             const NodeAssessment& a) const {
  const std::string product(a.product.view());
  return exhausted_budget(*pass_, unserved_, key, profile_rollout, product, taken_.of(key, product)).text();
}

void SlotCounts::add(const RolloutKey& key, const std::string& product) {
  ++cluster_;
  ++policies_[key.policy];
  ++groups_[{key, product}];
}

SlotsTaken SlotCounts::of(const RolloutKey& key, const std::string& product) const {
  return {cluster_, taken(policies_, key.policy), taken(groups_, std::pair(key, product))};
}

void Slots::count_changes() const {
  if (changing_) return;
  changing_.emplace();
  for (const std::string& name : pass_->index.nodes_in(Bucket::changing)) {
    const NodeAssessment& a = *pass_->index.find(name);
    const RolloutKey key = pass_->index.rollout_key_of(a);
    const std::string product(a.product.view());
    changing_->add(key, product);
    if (!a.change->served) repaired_.add(key, product);
  }
}

bool Slots::has_room(const RolloutKey& key, const ProfileRollout& profile_rollout, const NodeAssessment& a,
                     bool shown) const {
  if (!is_busy(a)) return free(key, profile_rollout, a);
  const bool repair = is_out_of_service(a);
  if (repair && shown) return true;
  count_changes();
  const std::string product(a.product.view());
  const SlotsTaken before = (repair ? repaired_ : *changing_).of(key, product);
  const SlotsTaken now = (repair ? repairs_begun_ : begun_).of(key, product);
  return has_room_for(pass_->index.policy(pass_->s.world, key.policy).rollout, key.policy,
                      count_of(profile_rollout.groups.at(product).tally),
                      {before.cluster + now.cluster, before.policy + now.policy, before.group + now.group});
}

bool Slots::has_room_beside(const RolloutKey& key, const SharingPolicy& policy, const BudgetCount& group,
                            std::int64_t in_change) const {
  return has_room_for(policy.rollout, key.policy, group, {in_change, in_change, in_change});
}

bool Slots::has_room_for(const RolloutSpec& rollout, const std::string& policy, const BudgetCount& group,
                         const SlotsTaken& held) const {
  BudgetCounts counts = budget_counts(*pass_, unserved_, policy, group);
  for (BudgetCount* budget : {&counts.cluster, &counts.policy, &counts.group}) budget->busy = 0;
  return has_slot(*pass_, rollout, counts, held);
}

bool Slots::free(const RolloutKey& key, const ProfileRollout& profile_rollout, const NodeAssessment& a) const {
  const std::string product(a.product.view());
  return free(key, product, pass_->index.policy(pass_->s.world, key.policy),
              count_of(profile_rollout.groups.at(product).tally));
}

bool Slots::free(const RolloutKey& key, const std::string& product, const SharingPolicy& policy,
                 const BudgetCount& group) const {
  const BudgetCounts counts = budget_counts(*pass_, unserved_, key.policy, group);
  return has_slot(*pass_, policy.rollout, counts, taken_.of(key, product));
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

bool Slots::fit_ever(const RolloutKey& key, const ProfileRollout& profile_rollout, const GangPeers& peers) const {
  const RolloutSpec& rollout = pass_->index.policy(pass_->s.world, key.policy).rollout;
  std::map<std::string, std::int64_t> needs;
  std::int64_t all = 0;
  for (const std::string& peer : peers.nodes) {
    const NodeAssessment& a = *pass_->index.find(peer);
    if (is_out_of_service(a)) continue;  // Needs no slot.
    ++needs[std::string(a.product.view())];
    ++all;
  }
  return all <= policy_budget(key) && all <= cluster_budget() && std::ranges::all_of(needs, [&](const auto& need) {
           return need.second <=
                  rollout.max_unavailable_per_group.of(profile_rollout.groups.at(need.first).tally.total);
         });
}

std::int64_t Slots::most_draining(const RolloutKey& key) const {
  return half_of(policy_budget(key));
}

std::int64_t Slots::most_draining_in_cluster() const {
  return half_of(cluster_budget());
}

std::int64_t Slots::cluster_budget() const {
  return pass_->s.settings.cluster_max_unavailable.of(budget_counts(*pass_, unserved_, {}, {}).cluster.total);
}

std::int64_t Slots::policy_budget(const RolloutKey& key) const {
  const BudgetCounts counts = budget_counts(*pass_, unserved_, key.policy, {});
  return pass_->index.policy(pass_->s.world, key.policy).rollout.max_unavailable.of(counts.policy.total);
}

namespace {
constexpr std::string_view kIdleNodesFirst = "IdleNodesFirst";
}  // namespace

std::optional<Reason> SlotYield::stop_for(const std::string& name, const NodeAssessment& a, const Reason& who) {
  const RolloutSpec& spec = pass_.index.policy(pass_.s.world, a.policy.view()).rollout;
  if (a.phase != Phase::draining || !a.holder.empty() || spec.workloads != WorkloadMode::wait_for_idle)
    return std::nullopt;
  // Unavailable without the operator's cordon, too, for example by a person's: it would go on holding the slot.
  if (!a.ready || (a.is_unavailable() && !a.change->cordoned)) return std::nullopt;
  for (const auto& [key, profile_rollout] : pass_.index.profile_rollouts) {
    if (profile_rollout.tally.of(Phase::pending) == 0) continue;
    const RolloutView& rollout = rollout_of(pass_, key);
    if (!rollout.gate().is_open()) continue;
    const std::string idle = idle_node(name, a, rollout);
    if (idle.empty()) continue;
    promised_.insert(idle);
    return Reason{std::string(kIdleNodesFirst),
                  fmt::format("idle node {} needs the slot, and this node still waits ({}): it is queued again", idle,
                              who.message)};
  }
  return std::nullopt;
}

std::string SlotYield::idle_node(const std::string& name, const NodeAssessment& a, const RolloutView& rollout) {
  const RolloutKey& key = rollout.key;
  const RolloutSpec& spec = pass_.index.policy(pass_.s.world, key.policy).rollout;
  const UnservedNodes unserved(pass_);
  for (const auto& [product, group] : rollout.profile_rollout.groups) {
    const BudgetCounts counts = budget_counts(pass_, unserved, key.policy, count_of(group.tally));
    if (group.pending.empty() || has_slot(pass_, spec, counts, {})) continue;
    const bool same_group = rollout.has(a) && a.product == product;
    const SlotsTaken without{-1, a.policy == key.policy ? -1 : 0, same_group ? -1 : 0};
    if (!has_slot(pass_, spec, counts, without)) continue;
    const std::vector<std::string> canaries = canaries_in_progress(rollout, product);
    const bool was_canary = same_group && std::ranges::find(canaries, name) != canaries.end();
    if (left_in_canary(rollout, product) + (was_canary ? 1 : 0) <= 0) continue;
    if (std::string idle = first_idle(rollout, group); !idle.empty()) return idle;
  }
  return {};
}

std::string SlotYield::first_idle(const RolloutView& rollout, const Group& group) {
  constexpr std::size_t kMostListed = 4;  // Per pass: each is a request.
  if (!busy_) busy_.emplace(pass_);
  std::size_t looked_at = 0;
  std::size_t listed = 0;
  for (const auto& [available, name] : group.pending) {
    const NodeAssessment& a = *pass_.index.find(name);
    if (!available || busy_->known(name) || !is_candidate(name, a)) continue;
    if (++looked_at > BusyNodes::kLookAhead || listed == kMostListed) break;
    const Drain drain = drain_for(a, a.transition, rollout.policy.rollout.workloads);
    if (drain == Drain::nothing) return name;
    const NodeUse use = use_of(pass_.s, name);
    if (!use.listed) {
      pass_.plan.consumers_wanted.insert(name);
      ++listed;
    }
    if (!use.fresh) continue;
    if (drained(drain, use, a)) return name;
    busy_->note(name, a);
  }
  return {};
}

bool SlotYield::is_candidate(const std::string& name, const NodeAssessment& a) {
  if (promised_.contains(name) || !a.ready || a.is_held() || is_repair(a)) return false;
  if (deferred_until(pass_, name).value_or(pass_.s.now) > pass_.s.now) return false;
  return !kai_hindrance(pass_, name, a);
}

std::optional<KaiHindrance> kai_hindrance(Pass& pass, const std::string& node, const NodeAssessment& a) {
  constexpr std::int64_t kLookupsPerNode = 16;  // Pods that are looked up in one pass.
  if (!excludes_kai(a.profile && a.profile->valid ? &a.profile->profile() : nullptr)) return std::nullopt;
  const KaiWorld& kai = pass.s.world.kai;
  std::int64_t asks = kLookupsPerNode;
  const UnreservedConsumers unreserved = unreserved_consumers(pass.s, pass.index.kai, node, asks, pass.plan.kai_wanted);
  std::string use = pass.index.kai.use_of(node);
  if (use.empty() && !unreserved.pods.empty()) {
    use = fmt::format("fraction pod {}, without a reservation", *unreserved.pods.begin());
  }
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

bool has_room_in_canary(const RolloutView& rollout, const std::string& product, std::int64_t started) {
  return rollout.canary_passed(product) || left_in_canary(rollout, product) > started;
}

WaitingRoom waiting_room(const Slots& slots, const RolloutKey& key, std::int64_t of_policy, std::int64_t of_cluster) {
  if (of_policy >= slots.most_draining(key)) return WaitingRoom::policy_full;
  return of_cluster >= slots.most_draining_in_cluster() ? WaitingRoom::cluster_full : WaitingRoom::free;
}

bool has_had_turn(const Pass& pass, const std::string& node) {
  const Node* shown = pass.s.world.nodes.find(node);
  const NodeAssessment* a = pass.index.find(node);
  if (shown == nullptr || a == nullptr) return false;
  return applying_deferral(*shown, *a, &pass.index.policy(pass.s.world, a->policy.view())).has_value();
}

namespace {

// Of a node that a person uncordoned. nullopt: it has no such deferral.
std::optional<StoredWait> wait_of(const Pass& pass, const std::string& node) {
  const Node* shown = pass.s.world.nodes.find(node);
  const NodeAssessment* a = pass.index.find(node);
  const auto deferral = shown == nullptr ? std::nullopt : deferral_of(*shown);
  if (!deferral || a == nullptr || deferral->by != Deferral::By::person) return std::nullopt;
  const Duration length = deferral_length(pass.index.policy(pass.s.world, a->policy.view()).rollout.idle_timeout);
  StoredWait wait = stored_wait(node, "deferral", deferral->until, length);
  // Of a clock that was ahead: it is over, unless this process has seen it begin.
  if (wait.begun > pass.s.now + std::chrono::seconds(1)) wait.begun = pass.s.now - wait.length;
  return wait;
}

}  // namespace

std::optional<WallTime> deferred_until(const Pass& pass, const std::string& node) {
  if (const auto wait = wait_of(pass, node)) return pass.ages.since(wait->timer, wait->begun) + wait->length;
  const Node* shown = pass.s.world.nodes.find(node);
  const bool deferred = shown != nullptr && pass.index.find(node) != nullptr && deferral_of(*shown);
  return deferred ? std::optional(pass.s.now) : std::nullopt;
}

void run_deferral_timers(Pass& pass) {
  for (const Bucket bucket : {Bucket::deferred, Bucket::self_loaded}) {
    for (const std::string& name : pass.index.nodes_in(bucket)) {
      if (const auto wait = wait_of(pass, name)) pass.ages.run(wait->timer, wait->begun);
    }
  }
}

}  // namespace gso
