#include "reconcilers/rollout/start_conditions.h"

#include <fmt/format.h>

#include "reconcilers/kai/index.h"
#include "reconcilers/kai/planners.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/node/applying_deferral.h"
#include "reconcilers/profile/profile.h"

namespace gso {

std::optional<KaiHindrance> kai_hindrance(Pass& pass, const std::string& node, const NodeAssessment& a) {
  constexpr std::int64_t kLookupsPerNode = 16;  // Pods that are looked up in one pass.
  if (!excludes_kai(a.profile && a.profile->valid ? &a.profile->profile() : nullptr)) return std::nullopt;
  const KaiWorld& kai = pass.s.world.kai;
  std::int64_t asks = kLookupsPerNode;
  const UnreservedConsumers unreserved = unreserved_consumers(pass.s, pass.index.kai, node, asks, pass.plan.kai_wanted);
  std::string use = pass.index.kai.use_of(node);
  if (use.empty() && !unreserved.pods.empty()) {
    use = fmt::format("fraction pod {}, without a reservation", *unreserved.pods.begin());
  }
  if (kai.use_known && use.empty() && unreserved.known) return std::nullopt;
  if (kai.use_known && !use.empty()) return KaiHindrance{true, fmt::format("KAI shares the node's GPUs ({})", use)};
  pass.look_again_in(std::chrono::seconds(1));
  const std::string why =
      kai.use_known ? std::string("the pods that KAI has bound are being looked up") : kai.incomplete;
  return KaiHindrance{
      false, fmt::format("it is not known yet whether KAI shares the node's GPUs{}{}", why.empty() ? "" : ": ", why)};
}

bool report_kai_hindrance(Pass& pass, const std::string& node, const NodeAssessment& a) {
  const auto hindrance = kai_hindrance(pass, node, a);
  if (!hindrance) return false;
  const Finding found = finding_of(node, *hindrance);
  pass.finding(found.severity, found.object, found.reason, found.message);
  return true;
}

bool is_free_to_begin(const NodeAssessment& assessment) {
  return assessment.ready && !assessment.is_held();
}

bool has_room_in_canary(const RolloutView& rollout, const std::string& product, std::int64_t started) {
  return rollout.canary_passed(product) || left_in_canary(rollout, product) > started;
}

WaitingRoom waiting_room(const Slots& slots, const RolloutKey& key, std::int64_t of_policy, std::int64_t of_cluster) {
  if (of_policy >= slots.most_draining(key)) return WaitingRoom::policy_full;
  return of_cluster >= slots.most_draining_in_cluster() ? WaitingRoom::cluster_full : WaitingRoom::free;
}

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
