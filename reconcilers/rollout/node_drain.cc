#include "reconcilers/rollout/node_drain.h"

#include "reconcilers/node/served_afterwards.h"
#include "reconcilers/rollout/drain.h"

namespace gso {

NodeDrain node_drain_of(const Pass& pass, const std::string& node, const NodeAssessment& a) {
  NodeDrain out;
  out.node = node;
  out.policy = &pass.index.policy(pass.s.world, a.policy.view());
  out.until = drain_of(pass, a);
  out.afterwards = a.expectation.get();
  out.serves = served_afterwards(a);
  if (a.in_change()) out.since = a.change->listed;
  return out;
}

}  // namespace gso
