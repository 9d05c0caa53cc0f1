// See deferrals.h.
#include "reconcilers/rollout/deferrals.h"

#include "reconcilers/node/applying_deferral.h"

namespace gso {

bool has_had_turn(const Pass& pass, const std::string& node) {
  const Node* shown = pass.s.world.nodes.find(node);
  const NodeAssessment* a = pass.index.find(node);
  if (shown == nullptr || a == nullptr) return false;
  return applying_deferral(*shown, *a, &pass.index.policy(pass.s.world, a->policy.view())).has_value();
}

std::optional<WallTime> deferred_until(const Pass& pass, const std::string& node) {
  const Node* shown = pass.s.world.nodes.find(node);
  const NodeAssessment* a = pass.index.find(node);
  const auto deferral = shown == nullptr ? std::nullopt : deferral_of(*shown);
  if (!deferral || a == nullptr) return std::nullopt;
  if (deferral->by != Deferral::By::person) return pass.s.now;
  const Duration longest = deferral_length(pass.index.policy(pass.s.world, a->policy.view()).rollout.idle_timeout);
  const bool is_too_late = deferral->until - pass.s.now > longest + std::chrono::seconds(1);
  return is_too_late ? pass.s.now : deferral->until;
}

}  // namespace gso
