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

namespace {

// Of a node that a person uncordoned. nullopt: it has no such deferral.
std::optional<StoredWait> wait_of(const Pass& pass, const std::string& node) {
  const Node* shown = pass.s.world.nodes.find(node);
  const NodeAssessment* a = pass.index.find(node);
  const auto deferral = shown == nullptr ? std::nullopt : deferral_of(*shown);
  if (!deferral || a == nullptr || deferral->by != Deferral::By::person) return std::nullopt;
  const Duration length = deferral_length(pass.index.policy(pass.s.world, a->policy.view()).rollout.idle_timeout);
  StoredWait wait = stored_wait(node, "deferral", deferral->until, length);
  // Of a clock that was ahead: it is over, unless this process has seen it begin.
  if (wait.begun > pass.s.now + std::chrono::seconds(1)) wait.begun = pass.s.now - wait.length;
  return wait;
}

}  // namespace

std::optional<WallTime> deferred_until(const Pass& pass, const std::string& node) {
  if (const auto wait = wait_of(pass, node)) return pass.ages.since(wait->timer, wait->begun) + wait->length;
  const Node* shown = pass.s.world.nodes.find(node);
  const bool deferred = shown != nullptr && pass.index.find(node) != nullptr && deferral_of(*shown);
  return deferred ? std::optional(pass.s.now) : std::nullopt;
}

void run_deferral_timers(Pass& pass) {
  for (const Bucket bucket : {Bucket::deferred, Bucket::self_loaded}) {
    for (const std::string& name : pass.index.nodes_in(bucket)) {
      if (const auto wait = wait_of(pass, name)) pass.ages.run(wait->timer, wait->begun);
    }
  }
}

}  // namespace gso
