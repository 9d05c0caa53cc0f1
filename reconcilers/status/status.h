// Status of SharingPolicy and SharingRollout: JSON texts that change only when their content changes. What others ask
// of this folder: its planners, and texts that commands show as well.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

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

// --- What `cleanup` removes: the operator's cordons, labels, annotations and finalizers. It removes nothing whose
// removal would end a process on a GPU.

struct Cleanup {
  // PatchNode, PatchFinalizers and PatchStatus; empty when nothing of the operator is left.
  std::vector<PlannedAction> actions;
  std::vector<std::string> kept;  // What stays on purpose, and why: for people.
};

// Nodes whose profile label was written by a policy with deletionPolicy Revert. The label gets its previous value where
// no pod uses the GPUs, so the GPU consumers of these nodes must be listed first.
[[nodiscard]] std::set<std::string> nodes_to_revert(const World& world, FleetIndex& index);

// Nodes whose standalone MPS daemons end when that DaemonSet is deleted, unless a person has let them
// (kEndDaemonsAnnotation): a daemon that clients use is not to end, so the GPU consumers of these nodes must be listed.
[[nodiscard]] std::set<std::string> nodes_that_lose_daemons(const World& world, const ObjectKey& daemonset);

// Of the nodes of one of the two.
struct NodesInUse {
  std::set<std::string> used;                  // Pods use their GPUs.
  std::map<std::string, std::string> unknown;  // Node -> why it is not known whether pods use its GPUs.
};

// The ConfigMaps that might hold keys of the operator which labels on nodes go on naming (Retain). plan_cleanup() reads
// them in `world`.
[[nodiscard]] std::set<ObjectKey> config_maps_of_retained_keys(const World& world, FleetIndex& index);
// Those that the account cannot read -> why. Neither the operator nor `cleanup` removes a key that a label names, so
// such a key stays all the same.
using UnreadConfigMaps = std::map<ObjectKey, std::string>;

// `index` is up to date with `world`, except for ConfigMaps.
//
// The operator's cordons are removed, except where a driver upgrade, a MIG change or `hold` relies on them (S7). Labels
// that the operator wrote get their previous value; nvidia.com/mps.capable stays, because the MPS daemon would end
// without it. The label that selects a profile stays (Retain), or gets its previous value (Revert) on nodes whose GPUs
// no pod uses. SharingRollouts in progress end as Superseded (kOperatorRemoved): no operator is left to continue them,
// and a reinstalled operator starts fresh. The conditions of policies become Unknown, for the same reason.
[[nodiscard]] Cleanup plan_cleanup(const World& world, FleetIndex& index, const NodesInUse& in_use,
                                   const UnreadConfigMaps& unread, WallTime now);
inline constexpr std::string_view kOperatorRemoved = "OperatorRemoved";

}  // namespace gso
