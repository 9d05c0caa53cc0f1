// What must be true before the change of a Pending node begins. The planner of starts asks it, and statuses name what
// is not true, so both read the same conditions.
#pragma once

#include <cstdint>
#include <string>

#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/rollout/slots.h"

namespace gso {

// The node is Ready, and no person holds it.
[[nodiscard]] bool is_free_to_begin(const NodeAssessment& assessment);
// The canary of the group has passed, or needs more nodes than `started`: those of the group that start in this pass.
[[nodiscard]] bool has_room_in_canary(const RolloutView& rollout, const std::string& product, std::int64_t started);

// At most half of the slots of the policy, and of the cluster, wait for workloads, so that busy nodes do not stop idle
// ones.
enum class WaitingRoom : std::uint8_t { free, policy_full, cluster_full };
// `of_policy`, `of_cluster`: how many nodes wait for their workloads.
[[nodiscard]] WaitingRoom waiting_room(const Slots& slots, const RolloutKey& key, std::int64_t of_policy,
                                       std::int64_t of_cluster);

}  // namespace gso
