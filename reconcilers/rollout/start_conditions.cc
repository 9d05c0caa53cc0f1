#include "reconcilers/rollout/start_conditions.h"

namespace gso {

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

}  // namespace gso
