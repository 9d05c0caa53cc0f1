// What the statuses are made of while a pass writes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/status/status.h"

namespace gso {

// --- The sums over one policy's rollouts (policy_status.cc adds them up), and the conditions (policy_conditions.cc)
// and Events (progress.cc) that follow from them.

struct PolicySum {
  const SharingPolicy* policy = nullptr;
  Tally tally;
  std::map<std::string, std::set<std::string>> blocked;
  std::set<std::string> targets;
  std::set<std::string> failed;
  // The first nodes in a change, then the first of the Pending nodes.
  std::vector<std::string> unsettled;
  std::vector<std::string> drifting;  // Nodes that do not show what they run, and what the first one shows.
  std::string drift;
  bool is_repaired = false;  // The operator restarts the pods of the first one if it does not recover.
  // Of `drifting`: nodes whose labels are missing, and the message about the first one.
  std::int64_t unlabelled = 0;
  std::string labels_missing;
  // Policies that were deleted while they had a stop, and that govern nodes which it selects.
  std::vector<std::string> gone;
  std::vector<std::string> awaited;  // Nodes that it might govern once their labels are back.
  // Of `drifting`: nodes that drifted already when the operator first read them.
  std::int64_t drifting_since_install = 0;
  // Nodes that do not show what they run and are not repaired now: name and why (NotReady, or who holds them).
  std::vector<std::string> excused;
  std::string excused_for;                               // The reason of the first one.
  std::vector<std::string> assumed;                      // RolloutView::assumed()
  std::vector<std::pair<RolloutKey, GateState>> closed;  // Rollouts with work and a closed gate.
  std::vector<std::string> invalid;                      // Messages of profiles that do not parse.
  std::vector<ObjectRef> invalid_objects;                // The object that each of `invalid` concerns.
  std::vector<std::string> breaking;                     // Nodes that would break.
  std::string break_reason;
  std::string unstaged;        // Why a change is not staged in waves.
  std::string unread_owner;    // ClusterPolicy that cannot be read.
  std::string unstaged_owner;  // ClusterPolicy that `unstaged` concerns.
  std::string rollout;
  bool stopped = false;  // `rollout` is stopped by people, failures or windows.
  // Key -> what its nodes wait for in addition to those in progress; empty: they can start. Key -> progress_text().
  std::map<std::string, Reason> waits;
  std::map<std::string, std::string> progress;
  std::string rolled_back;    // The policy's inline profile failed and was rolled back.
  std::string failed_before;  // A recorded failure whose nodes are gone.
  std::map<std::string, std::map<std::string, std::string>> waiting;  // Reason -> nodes in a change -> blocking pods.
  // Rollouts with nodes that need a change, are in progress or have failed; those of them that stand still, with the
  // profile key.
  std::int64_t rollouts_with_work = 0;
  std::vector<std::pair<std::string, Reason>> standing;
  std::vector<std::string> unhealthy;  // Nodes with fewer devices than before, and what the first one shows.
  std::string missing_devices;
  OldestInProgress oldest;
  // Nodes in a change while the operator runs with max-mode Observe.
  std::vector<std::string> left_mid_change;
  std::map<std::string, std::set<std::string>> contested;  // Label that another client keeps changing -> nodes.
  std::vector<std::string> left_to_nos;                    // Nodes that it selects and whose GPUs nos partitions.
};

// The first five of them, and how many more.
[[nodiscard]] std::string join_names(const std::vector<std::string>& names);
// Why such nodes are not changed, and the command that changes them.
[[nodiscard]] std::string preexisting_drift_text(std::string_view nodes, std::string_view policy);
[[nodiscard]] std::string unproven_text(std::string_view nodes, std::string_view policy);
// One text for each profile key, or the text alone if all are equal.
[[nodiscard]] std::string text_by_key(const std::map<std::string, std::string>& texts);

[[nodiscard]] StatusCondition config_valid_of(const PolicySum& sum);
[[nodiscard]] StatusCondition degraded_of(const PolicySum& sum);
// The condition Progressing when every rollout with work stands still (`standing`).
[[nodiscard]] StatusCondition standing_condition(const PolicySum& sum);
// The condition Progressing when the operator runs with max-mode Observe and has left nodes mid-change
// (`left_mid_change`).
[[nodiscard]] StatusCondition left_mid_change_condition(const PolicySum& sum);
[[nodiscard]] StatusCondition ready_of(const PolicySum& sum);
// Overlapped is True on the losing policy, then set to False once.
[[nodiscard]] std::optional<StatusCondition> overlapped_of(const Pass& pass, const PolicySum& sum,
                                                           const nlohmann::json& before);
// nullopt if nos partitions no node that the policy selects, and never did (`before`: the present status).
[[nodiscard]] std::optional<StatusCondition> left_to_nos_of(const PolicySum& sum, const nlohmann::json& before);
// nullopt if no other client keeps changing labels that the operator wrote, and none ever did.
[[nodiscard]] std::optional<StatusCondition> contested_of(const PolicySum& sum, const nlohmann::json& before);
// What the policy's selector does that its author might not mean.
[[nodiscard]] std::optional<StatusCondition> selector_condition_of(const PolicySum& sum, const nlohmann::json& before);
// nullopt if every change is staged in waves, and always was (`before`: the present status).
[[nodiscard]] std::optional<StatusCondition> staged_of(const PolicySum& sum, const nlohmann::json& before);

// Events for what the status reports now and did not report before.
void report_changes(Pass& pass, const PolicySum& sum, const nlohmann::json& before, const nlohmann::json& after);

// --- The status of one SharingRollout (rollout_status.cc).

struct RolloutPhase {
  std::string name;
  Reason why;
  // Progressing, but nothing moves until somebody acts (standstill.h).
  bool stands = false;
  // progress_text(): part of the conditions, but not a reason for an Event.
  std::string progress{};
  [[nodiscard]] std::string said() const {
    return why.message.empty() || progress.empty() ? why.message + progress : why.message + "; " + progress;
  }
};

// The next content of a SharingRollout's status.
struct NextStatus {
  RolloutPhase phase{"Superseded",
                     {"Superseded", "the profile has changed again, or no node of the policy uses it any more"}};
  nlohmann::json status = nlohmann::json::object();  // The present status, updated where it differs.
  bool left = false;                                 // is_left()
  bool anew = false;                                 // RolloutView::anew
  bool stopped = false;                              // By people, failures or windows.
  std::int64_t changing = 0;                         // Nodes in progress,
  std::int64_t settled = 0;                          // and nodes that are done.
  std::vector<GroupWait> waits = {};                 // What the groups wait for while the gate is open.
};

// Of a SharingRollout whose revision is the view's target.
[[nodiscard]] RolloutPhase rollout_phase_of(const RolloutView& view, const SharingRollout& rollout);

// An entry of status.nodes, and the most that the CRD takes.
inline constexpr std::size_t kMostRolloutNodes = 50;
[[nodiscard]] nlohmann::json rollout_node(std::string_view name, std::string_view state, const Reason& why);
// Deletes the object of an earlier attempt: the next pass creates the new one before it starts a node.
void replace_attempt(Pass& pass, const SharingRollout& rollout, std::string why);

// For a SharingRollout whose template is the newest of its DaemonSet. False if nothing must be written.
[[nodiscard]] bool next_status_of_daemons(Pass& pass, const DaemonRollout& daemons, const SharingRollout& rollout,
                                          NextStatus& out);

}  // namespace gso
