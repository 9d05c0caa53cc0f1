// See slots.h.
#include "reconcilers/rollout/slots.h"

#include <algorithm>

namespace gso {
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
  return exhausted_budget(*pass_, unserved_, key, profile_rollout, product, taken_.of(key, product));
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

}  // namespace gso
