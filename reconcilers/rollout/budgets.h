// The three budgets of nodes that are allowed to be out of service at once (S1), of the cluster, of a policy and of a
// group; and the nodes that count in them although no plugin serves them.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/fleet/pass.h"

namespace gso {

enum class Budget : std::uint8_t { cluster, policy, group };
template <class T>
using PerBudget = std::array<T, 3>;  // In the order of Budget.

struct LabelledNodes;  // partitioning/partitioning.h

// The nodes of one budget, and how many of them hold a slot.
struct BudgetCount {
  std::int64_t total = 0;
  std::int64_t busy = 0;
};

// Nodes with slices (partitioning/), which share the budget of the cluster with the nodes that the index counts.
struct SliceNodes {
  std::int64_t total = 0;
  std::set<std::string> moving;  // Their slices change: each holds a slot.
};
[[nodiscard]] SliceNodes slice_nodes(const World& world, const Index& index, const LabelledNodes& labelled);
// The cluster's budget, before this pass.
[[nodiscard]] BudgetCount cluster_count(const Index& index, const SliceNodes& slices);

// Before this pass.
using BudgetCounts = PerBudget<BudgetCount>;
// `group`: of the nodes that change alike (a rollout's of one product, or a DaemonSet's of one product).
[[nodiscard]] BudgetCounts budget_counts(const Pass& pass, const std::string& policy, const BudgetCount& group);
// How many nodes each budget allows to be out of service.
[[nodiscard]] PerBudget<std::int64_t> budget_sizes(const Pass& pass, const std::string& policy,
                                                   const BudgetCounts& counts);
[[nodiscard]] BudgetCount count_of(const Tally& tally);

// Why a node holds a slot of the budgets (is_busy()).
enum class SlotHold : std::uint8_t {
  none,                  // It holds none.
  in_change,             // The operator changes it: nobody else returns it to service.
  failed,                // Its change failed.
  unreadable,            // What is written of its change cannot be read.
  not_ready,             // Its kubelet, or who restarts the machine, keeps it out of service.
  cordoned,              // A person or a program other than the operator has cordoned it.
  cordoned_by_operator,  // For a change that did not finish.
  no_gpus,               // Nothing is allocatable although GPUs are expected.
};
[[nodiscard]] SlotHold slot_hold(const World& world, const Index& index, const std::string& node);
// The same for people: "cordoned, not by the operator".
[[nodiscard]] std::string_view describe(SlotHold hold);

// The nodes that a pass has started already.
using SlotsTaken = PerBudget<std::int64_t>;

// All three budgets have room for one more node.
[[nodiscard]] bool has_slot(const Pass& pass, const std::string& policy, const BudgetCounts& counts,
                            const SlotsTaken& taken);

// How the text of a full budget begins.
inline constexpr std::string_view kNoSlot = "no slot is free";
// BudgetExhausted: the budgets that have no room for one more node, with the nodes that hold them: raising one of them
// alone would change nothing. Without a code: all have room.
struct Exhausted : Reason {
  // The message in its parts: the first budget, "also full: …" for the others, and which holders the operator does not
  // change, each with why it holds its slot: "out of service: t02 (NotReady)".
  std::vector<std::string> clauses;
  [[nodiscard]] bool is_any() const { return !clauses.empty(); }
};
[[nodiscard]] Exhausted exhausted_budget(const Pass& pass, const RolloutKey& key, const ProfileRollout& profile_rollout,
                                         const std::string& product, const SlotsTaken& taken);

// The same for the cluster's budget alone, once a pass has started so many nodes. None also if only changes of slices
// hold its slots.
[[nodiscard]] Exhausted exhausted_cluster(const Pass& pass, std::int64_t started);

// All nodes that hold slots of the budgets that are full for the group.
[[nodiscard]] std::set<std::string> holders_of_full_budgets(const Pass& pass, const RolloutKey& key,
                                                            const ProfileRollout& profile_rollout,
                                                            const std::string& product);
// The same of all groups of the rollout whose nodes wait to start.
[[nodiscard]] std::set<std::string> holders_of_awaited_slots(const Pass& pass, const RolloutKey& key,
                                                             const ProfileRollout& profile_rollout);

}  // namespace gso
