// Status of SharingPolicy and SharingRollout: JSON texts that change only when what they say changes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/model/conditions.h"

namespace gso {

// metav1.Condition without its times.
struct StatusCondition {
  std::string type;
  bool holds = false;
  std::string reason;
  std::string message;
  bool unknown = false;  // Status Unknown: nobody is there to tell.
};

// As SharingPolicy spells it: Enforce, Approve, Observe.
[[nodiscard]] std::string_view mode_name(PolicyMode mode);

// Phases of a SharingRollout after which nothing of it is under way: Completed, Superseded, Failed, RolledBack.
[[nodiscard]] bool has_ended(std::string_view phase);
// Why a status is written, by PatchStatus or into the state ConfigMap: not worth a log line each.
inline constexpr std::string_view kStatusChanged = "StatusChanged";
// Reason of a policy's condition Progressing while nothing is to be done.
inline constexpr std::string_view kNothingToDo = "Settled";

// What a SharingRollout's status says of nodes when another revision, or nobody, takes its place: none of them is in
// flight, waits or is blocked for it any more.
void close_counts(nlohmann::json& status);

// conditions[] with lastTransitionTime kept from `before` (a status text) where the status did not flip.
[[nodiscard]] nlohmann::json condition_list(const std::vector<StatusCondition>& conditions, std::string_view before,
                                            std::int64_t generation, WallTime now);

// Who of a policy's nodes has been changing for the longest time.
struct OldestInFlight {
  std::string node;  // Empty: nobody.
  WallTime since{};
};
// Takes a node that is in flight into account; names since when it has been so.
void note_in_flight(Pass& pass, const std::string& node, OldestInFlight& oldest);
struct Progress {
  std::string rollout;  // The SharingRollout under way; empty: none.
  std::int64_t up_to_date = 0;
  std::int64_t in_flight = 0;
  OldestInFlight oldest;
};
// profileKey, estimatedCompletion and oldestInFlight of a policy's status. `before`: the status as it stands, since an
// estimate changes only when another node is done, or when it has passed.
void add_progress(Pass& pass, const SharingPolicy& policy, const Progress& progress, std::string_view before,
                  nlohmann::json& status);
// The condition Progressing of a deleted policy that waits for its nodes under the finalizer; nullopt for others.
[[nodiscard]] std::optional<StatusCondition> reverting(const Pass& pass, const SharingPolicy& policy);

// The planners of policy.status and of the SharingRollouts' status.
void plan_default_policy(Pass& pass);
void plan_policy_statuses(Pass& pass);
void plan_rollout_statuses(Pass& pass);
void plan_findings(Pass& pass);
// Where the record cannot be read (FleetIndex::record_problem): a finding and an Event; and what every policy says
// then.
void tell_unreadable_record(Pass& pass);
void plan_unreadable_statuses(Pass& pass);
// What preflight finds about ConfigMaps, DaemonSets and nodes: told before anything is touched.
void plan_preflight(Pass& pass);

}  // namespace gso
