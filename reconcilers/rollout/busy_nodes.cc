// Busy nodes, by timers of earlier passes and the listings of nodes in flight.
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
  const Duration age = pass_.age({Timer::busy, node, std::string(a.target.view())});
  pass_.look_again_in(kKnown - age);
}

std::int64_t BusyNodes::waiting(const std::string& policy) const {
  const auto it = waiting_.find(policy);
  return it == waiting_.end() ? 0 : it->second;
}

bool BusyNodes::waits(const std::string& node, const NodeAssessment& a) const {
  if (!a.in_change() || !a.change->cordoned) return false;
  if (!pass_.s.consumers.contains(node)) return true;  // Nobody has looked since we came.
  return !drained(Drain::idle, use_of(pass_.s, node, WallTime::min()), a);
}

}  // namespace gso
