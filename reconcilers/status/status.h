// Status of SharingPolicy and SharingRollout: JSON texts that change only when their content changes. What others ask
// of this folder: its planners, and texts that commands show as well.
#pragma once

#include <string>
#include <string_view>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {

// Reason of a status write, by PatchStatus or into the state ConfigMap. Such writes are too frequent for a log line
// each.
inline constexpr std::string_view kStatusChanged = "StatusChanged";

// "2 of the selected nodes are governed by policy team: its priority is higher": which policies won nodes that this one
// selects, how many, and why. Empty: none did. Always empty for policy `default`, which every other one wins against.
[[nodiscard]] std::string overlap_text(const World& world, const FleetIndex::Impl& index, const SharingPolicy& policy);
// The same of all nodes that the policy selects and does not govern, also of `default` and of a policy that is being
// deleted, and of nodes that no policy governs.
[[nodiscard]] std::string other_governors_text(const World& world, const FleetIndex::Impl& index,
                                               const SharingPolicy& policy);

// The planners of policy.status and of the SharingRollouts' status.
void plan_default_policy(Pass& pass);
void plan_policy_statuses(Pass& pass);
void plan_rollout_statuses(Pass& pass, const DaemonRollouts& daemons);
void trim_rollout_history(Pass& pass);
// PlannerSettings::options_text, into the state ConfigMap. The fleet has a record.
void plan_options_text(Pass& pass);
void plan_findings(Pass& pass);
// If the record cannot be read (FleetIndex::record_problem): a finding and an Event, and the status of every policy.
void report_unreadable_record(Pass& pass);
void plan_unreadable_statuses(Pass& pass);
// What preflight finds about ConfigMaps, DaemonSets and nodes, reported before anything is changed.
void plan_preflight(Pass& pass);

}  // namespace gso
