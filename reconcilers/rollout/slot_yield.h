// Idle nodes go first: a node that only waits for its workloads gives its slot to an idle node that needs one.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/rollout/busy_nodes.h"

namespace gso {

class RolloutView;

class SlotYield {
 public:
  // `pass` must outlive it.
  explicit SlotYield(Pass& pass) : pass_(pass) {}

  // Why a node leaves its change before a pod of it is deleted; nullopt: it keeps its slot. It leaves if its policy
  // waits for workloads, some still use it, and no slot is free for a Pending node that is certainly idle, and would be
  // free without it. A node that stays out of service keeps its slot anyway. Pending nodes that were not listed lately
  // are listed first, a few per pass. Each idle node takes one slot.
  [[nodiscard]] std::optional<Stop> stop_for(const std::string& name, const NodeAssessment& a, const BlockedBy& who);

 private:
  // A Pending node that could start if `name` left its change, and is idle; empty: none is known.
  [[nodiscard]] std::string idle_node(const std::string& name, const NodeAssessment& a, const RolloutView& rollout);
  [[nodiscard]] std::string first_idle(const RolloutView& rollout, const Group& group);
  [[nodiscard]] bool is_candidate(const std::string& name, const NodeAssessment& a);

  Pass& pass_;
  std::optional<BusyNodes> busy_;  // Made when a node asks: most passes have none that does.
  std::set<std::string> promised_;
};

}  // namespace gso
