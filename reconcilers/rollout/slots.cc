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
  return exhausted_budget(*pass_, unserved_, key, profile_rollout, product, taken_of(key, product));
}

SlotsTaken Slots::taken_of(const RolloutKey& key, const std::string& product) const {
  return {cluster_, taken(policies_, key.policy), taken(groups_, std::pair(key, product))};
}

bool Slots::free(const RolloutKey& key, const ProfileRollout& profile_rollout, const NodeAssessment& a) const {
  const std::string product(a.product.view());
  return free(key, product, pass_->index.policy(pass_->s.world, key.policy),
              count_of(profile_rollout.groups.at(product).tally));
}

bool Slots::free(const RolloutKey& key, const std::string& product, const SharingPolicy& policy,
                 const BudgetCount& group) const {
  const BudgetCounts counts = budget_counts(*pass_, unserved_, key.policy, group);
  return has_slot(*pass_, policy.rollout, counts, taken_of(key, product));
}

void Slots::take(const RolloutKey& key, const NodeAssessment& a) {
  if (is_busy(a)) return;  // It is counted already.
  take(key, std::string(a.product.view()));
}

void Slots::take(const RolloutKey& key, const std::string& product) {
  ++cluster_;
  ++policies_[key.policy];
  ++groups_[{key, product}];
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
