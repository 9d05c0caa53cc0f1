#include "reconcilers/rollout/budgets.h"

#include <fmt/format.h>

#include <set>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"

namespace gso {

namespace {

enum class Budget { none, cluster, policy, group };

struct Full {
  Budget budget = Budget::none;  // None: every budget has room.
  std::int64_t busy = 0;
  std::int64_t most = 0;
};

Full first_full(const Pass& pass, const RolloutKey& key, const ProfileRollout& profile_rollout,
                const std::string& product, const SlotsTaken& taken) {
  const Index& index = pass.index;
  const RolloutSpec& rollout = index.policy(pass.s.world, key.policy).rollout;
  const Tally& policy = index.policies.at(key.policy);
  const Tally& group = profile_rollout.groups.at(product).tally;
  const Full budgets[] = {
      {Budget::cluster, index.cluster.busy + taken.cluster,
       pass.s.settings.cluster_max_unavailable.of(index.cluster.total)},
      {Budget::policy, policy.busy + taken.policy, rollout.max_unavailable.of(policy.total)},
      {Budget::group, group.busy + taken.group, rollout.max_unavailable_per_group.of(group.total)},
  };
  for (const Full& budget : budgets) {
    if (budget.busy + 1 > budget.most) return budget;
  }
  return {};
}

bool counts_in(const Index& index, Budget budget, const RolloutKey& key, const std::string& product,
               const NodeAssessment* a) {
  if (budget == Budget::cluster) return true;
  if (a == nullptr || a->policy != key.policy) return false;
  return budget == Budget::policy || (a->product == product && index.is_of(*a, key));
}

// The nodes that hold the slots of a budget: those out of service or in a change, or whose change cannot be read.
std::set<std::string> holders(const Index& index, Budget budget, const RolloutKey& key, const std::string& product) {
  std::set<std::string> names;
  for (const Bucket bucket : {Bucket::unavailable, Bucket::changing, Bucket::failed}) {
    for (const std::string& name : index.nodes_in(bucket)) {
      if (counts_in(index, budget, key, product, index.find(name))) names.insert(name);
    }
  }
  for (const auto& [other, profile_rollout] : index.profile_rollouts) {
    const auto unreadable = profile_rollout.blocked.find(std::string(kChangeUnreadable));
    if (unreadable == profile_rollout.blocked.end()) continue;
    for (const std::string& name : unreadable->second) {
      if (counts_in(index, budget, key, product, index.find(name))) names.insert(name);
    }
  }
  return names;
}

}  // namespace

bool has_slot(const Pass& pass, const RolloutKey& key, const ProfileRollout& profile_rollout,
              const std::string& product, const SlotsTaken& taken) {
  return first_full(pass, key, profile_rollout, product, taken).budget == Budget::none;
}

std::string exhausted_budget(const Pass& pass, const RolloutKey& key, const ProfileRollout& profile_rollout,
                             const std::string& product, const SlotsTaken& taken) {
  const Full full = first_full(pass, key, profile_rollout, product, taken);
  if (full.budget == Budget::none) return {};
  const bool cluster = full.budget == Budget::cluster;
  const bool policy = full.budget == Budget::policy;
  const std::int64_t start_now = cluster ? taken.cluster : policy ? taken.policy : taken.group;
  const std::string what = cluster           ? "the cluster (--cluster-max-unavailable)"
                           : policy          ? fmt::format("policy {} (maxUnavailable)", key.policy)
                           : product.empty() ? "the group of unknown product (maxUnavailablePerGroup)"
                                             : fmt::format("group {} (maxUnavailablePerGroup)", product);
  const std::set<std::string> nodes = holders(pass.index, full.budget, key, product);
  const std::string now = start_now > 0 ? fmt::format("{} {} now", start_now, start_now == 1 ? "starts" : "start") : "";
  if (nodes.empty()) {
    return fmt::format("no slot is free: {} of {} slots of {} are in use{}", full.busy, full.most, what,
                       now.empty() ? "" : ": " + now);
  }
  return fmt::format("no slot is free: {} {} {} of {} slot{} of {}{}", first_names({nodes.begin(), nodes.end()}),
                     nodes.size() == 1 ? "holds" : "hold", full.busy, full.most, full.most == 1 ? "" : "s", what,
                     now.empty() ? "" : "; " + now);
}

}  // namespace gso
