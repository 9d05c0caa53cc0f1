// What must be true before the change of a node begins.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/rollout/slots.h"

namespace gso {

// --- S8, checked before the operator replaces pods of a node that serves or will serve replicas: KAI's reservations
// require that one nvidia.com/gpu is one device.

// nullopt: KAI does not use the node's GPUs, or the node's profile creates no replicas. Requests in `pass` what is not
// known, and another pass.
[[nodiscard]] std::optional<KaiHindrance> kai_hindrance(Pass& pass, const std::string& node,
                                                        const NodeAssessment& assessment);

// Reports the same as a finding about the node; true if KAI hinders the change.
bool report_kai_hindrance(Pass& pass, const std::string& node, const NodeAssessment& assessment);

// --- What must be true before the change of a Pending node begins. The planner of starts asks it, and statuses name
// what is not true, so both read the same conditions.

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

// --- When a deferred node may start again, once it is idle.

// The workloads of the node have had their turn for its target (Deferral): it starts once it is idle.
[[nodiscard]] bool has_had_turn(const Pass& pass, const std::string& node);
// Not before the time in its annotation, if a person uncordoned it: by the wall clock as it goes now. A time that is
// further away than idleTimeout counts as over, unless this process has seen the deferral begin. nullopt: the node has
// no deferral, or it cannot be read.
[[nodiscard]] std::optional<WallTime> deferred_until(const Pass& pass, const std::string& node);

// Names the timers of these times, for the nodes that wait for them.
void run_deferral_timers(Pass& pass);

}  // namespace gso
