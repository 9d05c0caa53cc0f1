#include "reconcilers/rollout/budgets.h"

#include <fmt/format.h>

#include <set>

#include "reconcilers/model/message_text.h"

namespace gso {

namespace {

enum class Budget { none, cluster, policy, group };

struct Full {
  Budget budget = Budget::none;  // None: every budget has room.
  std::int64_t busy = 0;
  std::int64_t most = 0;
};

Full first_full(const Pass& pass, const RolloutKey& key, const Unit& unit, const std::string& product,
                const SlotsTaken& taken) {
  const Index& index = pass.index;
  const RolloutSpec& rollout = index.policy(pass.s.world, key.policy).rollout;
  const Tally& policy = index.policies.at(key.policy);
  const Tally& group = unit.groups.at(product).tally;
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

// Who holds the slots of a budget: its nodes that are out of service or in a change.
std::string holders(const Index& index, Budget budget, const RolloutKey& key, const std::string& product) {
  std::set<std::string> names;
  for (const Bucket bucket : {Bucket::unavailable, Bucket::changing, Bucket::failed}) {
    for (const std::string& name : index.nodes_in(bucket)) {
      if (counts_in(index, budget, key, product, index.find(name))) names.insert(name);
    }
  }
  return first_names({names.begin(), names.end()});
}

}  // namespace

bool has_slot(const Pass& pass, const RolloutKey& key, const Unit& unit, const std::string& product,
              const SlotsTaken& taken) {
  return first_full(pass, key, unit, product, taken).budget == Budget::none;
}

std::string exhausted_budget(const Pass& pass, const RolloutKey& key, const Unit& unit, const std::string& product,
                             const SlotsTaken& taken) {
  const Full full = first_full(pass, key, unit, product, taken);
  if (full.budget == Budget::none) return {};
  const bool cluster = full.budget == Budget::cluster;
  const bool policy = full.budget == Budget::policy;
  const std::int64_t start_now = cluster ? taken.cluster : policy ? taken.policy : taken.group;
  const std::string what = cluster           ? "cluster"
                           : policy          ? fmt::format("policy {}", key.policy)
                           : product.empty() ? "group of unknown product"
                                             : fmt::format("group {}", product);
  std::string out = fmt::format("{}: {} of {} out of service or in flight", what, full.busy, full.most);
  const std::string names = holders(pass.index, full.budget, key, product);
  if (names.empty()) return out;
  return out + fmt::format(" ({}{})", names, start_now > 0 ? fmt::format("; {} start now", start_now) : "");
}

}  // namespace gso
