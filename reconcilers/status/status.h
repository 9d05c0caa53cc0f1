// Status of SharingPolicy and SharingRollout: JSON texts that change only when their content changes. The header of
// this folder: what its files share (policy_conditions.cc, progress.cc), and the planners, which have files of their
// own.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/reasons/reason.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {

// metav1.Condition without its times.
struct StatusCondition {
  std::string type;
  bool holds = false;
  Reason why;
  bool unknown = false;  // Status Unknown: no operator is left to evaluate it.

  StatusCondition(std::string_view kind, bool is_true, std::string_view code, std::string message,
                  bool is_unknown = false)
      : StatusCondition(kind, is_true, Reason(code, std::move(message)), is_unknown) {}
  StatusCondition(std::string_view kind, bool is_true, Reason reason, bool is_unknown = false)
      : type(kind), holds(is_true), why(std::move(reason)), unknown(is_unknown) {}
};

// Reason of a status write, by PatchStatus or into the state ConfigMap. Such writes are too frequent for a log line
// each.
inline constexpr std::string_view kStatusChanged = "StatusChanged";

// status.reason: the code, and what the sentence beside it is about.
[[nodiscard]] nlohmann::json fields_of(const Reason& why);
// Removes that, and everything else in a status that is made of facts.
void erase_reasons(nlohmann::json& status);
// The text to write in place of the stored one; nullopt: it says the same. An API server with CRDs of an earlier
// release keeps no facts: what it keeps decides there.
[[nodiscard]] std::optional<std::string> text_to_write(std::string_view stored, const nlohmann::json& status);

// Removes from the list of nodes in a SharingRollout's status those that have not failed, when another revision
// replaces it: no node waits for it any more. Its counts stay as they were, because they show how far it came.
void keep_failed_nodes(nlohmann::json& status);

// conditions[] with lastTransitionTime kept from `before` (a status) where the status did not flip.
[[nodiscard]] nlohmann::json condition_list(const std::vector<StatusCondition>& conditions,
                                            const nlohmann::json& before, std::int64_t generation, WallTime now);

// The node of a policy that has been in a change for the longest time.
struct OldestInProgress {
  std::string node;  // Empty: no node is in a change.
  WallTime since{};
};
// Adds a node in a change and names the timer of its start.
void note_in_progress(Pass& pass, const std::string& node, OldestInProgress& oldest);
struct Progress {
  std::string rollout;  // The SharingRollout in progress; empty: none.
  std::int64_t up_to_date = 0;
  std::int64_t in_progress = 0;
  // By people, failures, windows or workloads: the time at which it continues cannot be predicted.
  bool stopped = false;
  OldestInProgress oldest;
};
// profileKey, estimatedCompletion and oldestInProgress of a policy's status. `before`: the present status, because an
// estimate changes only when another node is done, or when the estimated time has passed.
void add_progress(Pass& pass, const SharingPolicy& policy, const Progress& progress, const nlohmann::json& before,
                  nlohmann::json& status);
// The condition Progressing of a deleted policy that waits for its nodes under the finalizer; nullopt for others.
[[nodiscard]] std::optional<StatusCondition> reverting(const Pass& pass, const SharingPolicy& policy);

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
