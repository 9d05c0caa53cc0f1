// See deferrals.h.
#include "reconcilers/rollout/deferrals.h"

#include "reconcilers/node/applying_deferral.h"

namespace gso {

std::optional<WallTime> deferred_until(const Pass& pass, const std::string& node) {
  const Node* shown = pass.s.world.nodes.find(node);
  const NodeAssessment* a = pass.index.find(node);
  const auto deferral = shown == nullptr ? std::nullopt : deferral_of(*shown);
  if (!deferral || a == nullptr) return std::nullopt;
  const Duration longest = deferral_length(pass.index.policy(pass.s.world, a->policy.view()).rollout.idle_timeout);
  const bool is_too_late = deferral->until - pass.s.now > longest + std::chrono::seconds(1);
  return is_too_late ? pass.s.now : deferral->until;
}

}  // namespace gso
