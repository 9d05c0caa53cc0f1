// Who gets the slots of the budgets, and what else must be true before the change of a node begins; which nodes start
// now.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/rollout/budgets.h"
#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {

// --- BusyNodes: which nodes must wait for their workloads, during a change and before it. Idle nodes start first, and
// a few busy nodes never stop the other nodes of their policy or of another policy.

class BusyNodes {
 public:
  // How many busy nodes of a group are skipped before one of them starts, although later ones might be idle.
  static constexpr std::size_t kLookAhead = 16;
  // The limit while none of these busy nodes is allowed to start: the search for idle nodes then continues beyond
  // kLookAhead. Each node is listed again every kKnown.
  static constexpr std::size_t kMostLookedAt = 240;
  // How long a node counts as busy before it is listed again.
  static constexpr Duration kKnown = std::chrono::minutes(2);

  // `pass` must outlive it.
  explicit BusyNodes(Pass& pass);

  // The node was seen in use less than kKnown ago, for its present target.
  [[nodiscard]] bool known(const std::string& node) const { return known_.contains(node); }
  void note(const std::string& node, const NodeAssessment& assessment);
  // Nodes of a policy that are out of service and wait for their workloads, including those that start in this pass.
  [[nodiscard]] std::int64_t waiting(const std::string& policy) const {
    return waiting_.contains(policy) ? waiting_.at(policy) : 0;
  }
  // The same, of all policies.
  [[nodiscard]] std::int64_t waiting() const;
  void start(const std::string& policy) { ++waiting_[policy]; }

 private:
  [[nodiscard]] bool waits(const std::string& node, const NodeAssessment& assessment) const;

  Pass& pass_;
  std::set<std::string> known_;
  std::map<std::string, std::int64_t> waiting_;  // By policy.
};

// --- Slots: what a pass has used of the budgets (S1) so far. A node counts as busy while it is unavailable, whatever
// the cause. An available node needs a free slot. A busy one is changed in the slot that it holds, and each budget
// bounds how many of these are in a change at once.

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
  explicit Slots(const Pass& pass) : pass_(&pass) {}

  // The change of this node can begin. An available node: cluster, policy and group have a free slot. One that serves
  // behind somebody else's cordon: fewer nodes are in a change than each of them has slots. One that is out of service:
  // fewer are being repaired than that, or some node of its rollout has shown the text.
  [[nodiscard]] bool has_room(const RolloutView& rollout, const NodeAssessment& assessment) const;
  // The budgets that have no room for one more node, for people; empty: all have room.
  [[nodiscard]] std::string exhausted(const RolloutView& rollout, const NodeAssessment& assessment) const;
  // The change of the node begins in this pass.
  void take(const RolloutKey& key, const NodeAssessment& a);
  // Of the cluster, in this pass.
  [[nodiscard]] std::int64_t taken_of_cluster() const { return taken_.of_cluster(); }

  // The same for a node that holds no slot yet, in whatever change. `key` and `product` name the node's group, and
  // `group` counts it.
  [[nodiscard]] bool free(const RolloutKey& key, const std::string& product, const BudgetCount& group) const;
  void take(const RolloutKey& key, const std::string& product);
  // The same for a node that holds a slot: fewer nodes are in such a change than each budget has slots.
  [[nodiscard]] bool has_room_beside(const RolloutKey& key, const BudgetCount& group, std::int64_t in_change) const;

  // Whether the budgets could cover all nodes of a job if no other change were in progress.
  [[nodiscard]] bool fit_ever(const RolloutView& rollout, const GangPeers& peers) const;
  // At most half of the slots of a policy, and of the cluster, wait for workloads, so that a few busy nodes do not stop
  // the rest: how many nodes those are.
  [[nodiscard]] std::int64_t most_draining(Budget budget, const RolloutKey& key) const;
  // The first of both budgets in which so many nodes wait for their workloads; nullopt: one more may wait.
  [[nodiscard]] std::optional<Budget> without_waiting_room(const RolloutKey& key, std::int64_t of_policy,
                                                           std::int64_t of_cluster) const;

 private:
  // How many nodes the budgets allow. That of the group is one of no nodes.
  [[nodiscard]] PerBudget<std::int64_t> sizes(const RolloutKey& key) const;
  // The budgets have room for one more node, if those are all that hold their slots.
  [[nodiscard]] bool has_room_for(const RolloutKey& key, const BudgetCount& group, const SlotsTaken& held) const;
  // Counts every node in a change, when it is asked for the first time.
  void count_changes() const;

  const Pass* pass_;
  SlotCounts taken_;
  SlotCounts begun_;          // In this pass, in whatever slot,
  SlotCounts repairs_begun_;  // and those of them that were out of service.
  // In a change before this pass.
  mutable std::optional<SlotCounts> changing_;
  mutable SlotCounts repaired_;
};

// --- S8, checked before the operator replaces pods of a node that serves or will serve replicas: KAI's reservations
// require that one nvidia.com/gpu is one device.

// nullopt: KAI does not use the node's GPUs, or the node's profile creates no replicas. Requests in `pass` what is not
// known, and another pass.
[[nodiscard]] std::optional<KaiHindrance> kai_hindrance(Pass& pass, const std::string& node,
                                                        const NodeAssessment& assessment);

// Reports the same as a finding about the node; true if KAI hinders the change.
bool report_kai_hindrance(Pass& pass, const std::string& node, const NodeAssessment& assessment);

// --- What must be true before the change of a Pending node begins. The planner of starts asks it, and statuses name
// what is not true, so both read the same conditions.

// The node is Ready, and no person holds it.
[[nodiscard]] bool is_free_to_begin(const NodeAssessment& assessment);

// --- Starts (starts.cc): a rollout starts nodes while every gate (gates.h) is open and a slot is free in cluster,
// policy and group. Takes the slots of the nodes that start.

void plan_starts(Pass& pass, Slots& slots);

}  // namespace gso
