// Busy nodes, by conditions "busy/NODE/TARGET" of earlier passes and the listings of nodes in flight.
#include "reconcilers/rollout/busy_nodes.h"

#include <fmt/format.h>

#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/gates.h"

namespace gso {

BusyNodes::BusyNodes(Pass& pass) : pass_(pass) {
  constexpr std::string_view kPrefix = "busy/";
  for (auto it = pass.s.observed.lower_bound(std::string(kPrefix)); it != pass.s.observed.end(); ++it) {
    if (!it->first.starts_with(kPrefix)) break;
    const std::string_view rest = std::string_view(it->first).substr(kPrefix.size());
    const std::string name(rest.substr(0, rest.find('/')));
    const NodeAssessment* a = pass.index.find(name);
    if (a == nullptr || a->situation != Situation::change || !rest.ends_with(a->target.view())) continue;
    if (pass.s.now - it->second < kKnown) note(name, *a);
  }
  for (const std::string& name : pass.index.in_flight) {
    const NodeAssessment* a = pass.index.find(name);
    if (a != nullptr && waits(name, *a)) ++waiting_[std::string(a->policy.view())];
  }
}

void BusyNodes::note(const std::string& node, const NodeAssessment& a) {
  known_.insert(node);
  const Duration age = pass_.age(fmt::format("busy/{}/{}", node, a.target.view()));
  pass_.look_again_in(kKnown - age);
}

std::int64_t BusyNodes::waiting(const std::string& policy) const {
  const auto it = waiting_.find(policy);
  return it == waiting_.end() ? 0 : it->second;
}

bool BusyNodes::waits(const std::string& node, const NodeAssessment& a) const {
  if (!a.flight || !a.flight->cordoned || !pass_.s.observed.contains(draining_condition(node, a.flight->target)))
    return false;
  if (!pass_.s.consumers.contains(node)) return true;  // Nobody has looked since we came.
  return !drained(Drain::idle, use_of(pass_.s, node, WallTime::min()), a);
}

}  // namespace gso
