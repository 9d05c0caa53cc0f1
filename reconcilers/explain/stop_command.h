// What ends the stop of a rollout.
#pragma once

#include <string>
#include <string_view>

#include "reconcilers/model/policy.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {

// The command that lifts the first pause of the rollout, for whoever decides that: of its policy, of its ConfigMap, or
// its own. Empty: it is not paused by a switch.
[[nodiscard]] std::string resume_command(const RolloutView& rollout);

// The policy has no object any more, and governs its nodes by its last spec (FleetIndex::Impl::held_policies).
[[nodiscard]] bool policy_is_gone(const World& world, const FleetIndex::Impl& index, std::string_view policy);

// The command that changes what the spec of the policy, or the setting of the operator, forbids now (`reason`: Observe,
// OutsideWindow), for whoever decides that. Empty: another reason.
[[nodiscard]] std::string spec_command(const World& world, std::string_view reason, const SharingPolicy& policy,
                                       const PlannerSettings& settings);

// A gate that starts no node until a person or a calendar ends that, and that a retry does not end.
[[nodiscard]] bool outlasts_retry(Gate gate);

// The command that ends the stop of a SharingPolicy that does not exist any more, whom its nodes follow then, and what
// else ends it. Without the CRDs: the one that installs them.
[[nodiscard]] std::string gone_policy_command(const World& world, const FleetIndex::Impl& index,
                                              const PlannerSettings& settings, std::string_view policy);

// Begins an aborted or undone rollout again. `resume`: what must follow, because a pause stops it as well; empty: none
// does.
[[nodiscard]] std::string start_command(std::string_view policy, std::string_view resume);

// The stop that only a retry, or another profile, ends: failures, an undo, or an abort, whatever else holds the
// rollout. Open: none of them.
[[nodiscard]] GateState ended_by(const RolloutView& rollout);

// The command that ends what a person has to end: mode Observe, a closed window, a pause, a missing approval, an abort
// or an undo. Empty: nothing of that kind stops the rollout.
[[nodiscard]] std::string stop_command(const RolloutView& rollout);

}  // namespace gso
