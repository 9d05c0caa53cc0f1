// Slots: what a pass has taken of the budgets (S1) so far. Busy is what is out of service, whoever caused it; a node
// that is busy already needs no slot.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "reconcilers/rollout/budgets.h"
#include "reconcilers/rollout/drain.h"

namespace gso {

class Slots {
 public:
  // `pass` must outlive it. Copies may be kept, to go back to.
  explicit Slots(const Pass& pass) : pass_(&pass) {}

  // Out of service, or failed half-way: one of those that the budgets count already.
  [[nodiscard]] static bool is_busy(const NodeAssessment& a) { return a.unavailable || a.change != nullptr; }

  // Cluster, policy and group have room for one more node.
  [[nodiscard]] bool free(const RolloutKey& key, const Unit& unit, const NodeAssessment& a) const;
  // The first budget that has no room for one more node, for people; empty: all have.
  [[nodiscard]] std::string exhausted(const RolloutKey& key, const Unit& unit, const NodeAssessment& a) const;
  void take(const RolloutKey& key, const NodeAssessment& a);
  // Whether the budgets could take all nodes of a job if nothing else were under way.
  [[nodiscard]] bool fit_ever(const RolloutKey& key, const Unit& unit, const GangPeers& mates) const;
  // At most half of a policy's slots wait for workloads, so that a few busy nodes do not stop the rest.
  [[nodiscard]] std::int64_t most_draining(const RolloutKey& key) const;

 private:
  [[nodiscard]] SlotsTaken taken_of(const RolloutKey& key, const std::string& product) const;
  [[nodiscard]] std::int64_t policy_budget(const RolloutKey& key) const;

  const Pass* pass_;
  std::map<std::string, std::int64_t> policies_;
  std::map<std::pair<RolloutKey, std::string>, std::int64_t> groups_;
  std::int64_t cluster_ = 0;
};

}  // namespace gso
