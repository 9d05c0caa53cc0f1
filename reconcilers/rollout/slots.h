// Slots: what a pass has used of the budgets (S1) so far. A node counts as busy while it is out of service, whatever
// the cause; a busy node needs no further slot.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "reconcilers/rollout/budgets.h"
#include "reconcilers/rollout/gang_peers.h"

namespace gso {

class Slots {
 public:
  // `pass` must outlive it. A caller can keep a copy to restore it later.
  explicit Slots(const Pass& pass) : pass_(&pass), unserved_(pass) {}

  // Cluster, policy and group have room for one more node.
  [[nodiscard]] bool free(const RolloutKey& key, const ProfileRollout& profile_rollout, const NodeAssessment& a) const;
  // The budgets that have no room for one more node, for people; empty: all have room.
  [[nodiscard]] std::string exhausted(const RolloutKey& key, const ProfileRollout& profile_rollout,
                                      const NodeAssessment& a) const;
  void take(const RolloutKey& key, const NodeAssessment& a);
  // Of the cluster, in this pass.
  [[nodiscard]] std::int64_t taken_of_cluster() const { return cluster_; }

  // The same for a change that is not one of profiles, of a node that holds no slot yet. `key` and `product` name the
  // node's group, and `group` counts it.
  [[nodiscard]] bool free(const RolloutKey& key, const std::string& product, const SharingPolicy& policy,
                          const BudgetCount& group) const;
  void take(const RolloutKey& key, const std::string& product);

  // Whether the budgets could cover all nodes of a job if no other change were in progress.
  [[nodiscard]] bool fit_ever(const RolloutKey& key, const ProfileRollout& profile_rollout,
                              const GangPeers& peers) const;
  // At most half of the slots of a policy, and of the cluster, wait for workloads, so that a few busy nodes do not stop
  // the rest.
  [[nodiscard]] std::int64_t most_draining(const RolloutKey& key) const;
  [[nodiscard]] std::int64_t most_draining_in_cluster() const;

 private:
  [[nodiscard]] SlotsTaken taken_of(const RolloutKey& key, const std::string& product) const;
  [[nodiscard]] std::int64_t policy_budget(const RolloutKey& key) const;
  [[nodiscard]] std::int64_t cluster_budget() const;

  const Pass* pass_;
  UnservedNodes unserved_;
  std::map<std::string, std::int64_t> policies_;
  std::map<std::pair<RolloutKey, std::string>, std::int64_t> groups_;
  std::int64_t cluster_ = 0;
};

}  // namespace gso
