// Slots: what a pass has used of the budgets (S1) so far. A node counts as busy while it is unavailable, whatever the
// cause. An available node needs a free slot. A busy one is changed in the slot that it holds, and each budget bounds
// how many of these are in a change at once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "reconcilers/rollout/budgets.h"
#include "reconcilers/rollout/gang_peers.h"

namespace gso {

// Nodes by cluster, policy and group.
class SlotCounts {
 public:
  void add(const RolloutKey& key, const std::string& product);
  [[nodiscard]] SlotsTaken of(const RolloutKey& key, const std::string& product) const;
  [[nodiscard]] std::int64_t of_cluster() const { return cluster_; }

 private:
  std::map<std::string, std::int64_t> policies_;
  std::map<std::pair<RolloutKey, std::string>, std::int64_t> groups_;
  std::int64_t cluster_ = 0;
};

class Slots {
 public:
  // `pass` must outlive it. A caller can keep a copy to restore it later.
  explicit Slots(const Pass& pass) : pass_(&pass), unserved_(pass) {}

  // The change of this node can begin. An available node: cluster, policy and group have a free slot. One that serves
  // behind somebody else's cordon: fewer nodes are in a change than each of them has slots. One that is out of service:
  // fewer are being repaired than that, or `shown`: some node of its rollout has shown the text.
  [[nodiscard]] bool has_room(const RolloutKey& key, const ProfileRollout& profile_rollout, const NodeAssessment& a,
                              bool shown) const;
  // Cluster, policy and group have room for one more node.
  [[nodiscard]] bool free(const RolloutKey& key, const ProfileRollout& profile_rollout, const NodeAssessment& a) const;
  // The budgets that have no room for one more node, for people; empty: all have room.
  [[nodiscard]] std::string exhausted(const RolloutKey& key, const ProfileRollout& profile_rollout,
                                      const NodeAssessment& a) const;
  // The change of the node begins in this pass.
  void take(const RolloutKey& key, const NodeAssessment& a);
  // Of the cluster, in this pass.
  [[nodiscard]] std::int64_t taken_of_cluster() const { return taken_.of_cluster(); }

  // The same for a change that is not one of profiles, of a node that holds no slot yet. `key` and `product` name the
  // node's group, and `group` counts it.
  [[nodiscard]] bool free(const RolloutKey& key, const std::string& product, const SharingPolicy& policy,
                          const BudgetCount& group) const;
  void take(const RolloutKey& key, const std::string& product);
  // The same for a node that holds a slot: fewer nodes are in such a change than each budget has slots.
  [[nodiscard]] bool has_room_beside(const RolloutKey& key, const SharingPolicy& policy, const BudgetCount& group,
                                     std::int64_t in_change) const;

  // Whether the budgets could cover all nodes of a job if no other change were in progress.
  [[nodiscard]] bool fit_ever(const RolloutKey& key, const ProfileRollout& profile_rollout,
                              const GangPeers& peers) const;
  // At most half of the slots of a policy, and of the cluster, wait for workloads, so that a few busy nodes do not stop
  // the rest.
  [[nodiscard]] std::int64_t most_draining(const RolloutKey& key) const;
  [[nodiscard]] std::int64_t most_draining_in_cluster() const;

 private:
  [[nodiscard]] std::int64_t policy_budget(const RolloutKey& key) const;
  [[nodiscard]] std::int64_t cluster_budget() const;

  // The budgets have room for one more node, if those are all that hold their slots.
  [[nodiscard]] bool has_room_for(const RolloutSpec& rollout, const std::string& policy, const BudgetCount& group,
                                  const SlotsTaken& held) const;
  // Counts every node in a change, when it is asked for the first time.
  void count_changes() const;

  const Pass* pass_;
  UnservedNodes unserved_;
  SlotCounts taken_;
  SlotCounts begun_;          // In this pass, in whatever slot,
  SlotCounts repairs_begun_;  // and those of them that were out of service.
  // In a change before this pass.
  mutable std::optional<SlotCounts> changing_;
  mutable SlotCounts repaired_;
};

}  // namespace gso
