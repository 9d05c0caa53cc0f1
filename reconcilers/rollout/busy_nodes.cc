// Busy nodes, from the timers of earlier passes and the listings of nodes in a change.
#include "reconcilers/rollout/busy_nodes.h"

#include <fmt/format.h>

#include "reconcilers/rollout/drain.h"

namespace gso {

BusyNodes::BusyNodes(Pass& pass) : pass_(pass) {
  for (const SeenNode& seen : seen_nodes(pass, Timer::busy)) {
    if (seen.assessment.phase == Phase::pending && pass.s.now - seen.since < kKnown) {
      note(seen.name, seen.assessment);
    }
  }
  for (const SeenNode& seen : seen_nodes(pass, Timer::draining)) {
    if (waits(seen.name, seen.assessment)) ++waiting_[std::string(seen.assessment.policy.view())];
  }
}

void BusyNodes::note(const std::string& node, const NodeAssessment& a) {
  known_.insert(node);
  pass_.renew({Timer::busy, node, std::string(a.target.view())}, kKnown);
}

std::int64_t BusyNodes::waiting(const std::string& policy) const {
  const auto it = waiting_.find(policy);
  return it == waiting_.end() ? 0 : it->second;
}

std::int64_t BusyNodes::waiting() const {
  std::int64_t out = 0;
  for (const auto& [policy, count] : waiting_) out += count;
  return out;
}

bool BusyNodes::waits(const std::string& node, const NodeAssessment& a) const {
  if (!a.in_change() || !a.is_unavailable()) return false;
  // The node has not been listed since this replica became the leader.
  if (!pass_.s.consumers.contains(node)) return true;
  return !drained(Drain::idle, use_of(pass_.s, node), a);
}

}  // namespace gso
