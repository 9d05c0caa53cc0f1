// What the statuses are made of while a pass writes them.
#pragma once

#include <array>
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
#include "reconcilers/model/message_text.h"
#include "reconcilers/reasons/reason.h"
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/status/status.h"

namespace gso {

using Json = nlohmann::json;

// --- Every status.

// metav1.Condition without its times.
struct StatusCondition {
  std::string type;
  bool holds = false;
  Reason why;
  bool unknown = false;  // Status Unknown: no operator is left to evaluate it.

  StatusCondition(std::string_view kind, bool is_true, Reason reason, bool is_unknown = false)
      : type(kind), holds(is_true), why(std::move(reason)), unknown(is_unknown) {}
};
// conditions[] with lastTransitionTime kept from `before` (a status) where the status did not flip.
[[nodiscard]] Json condition_list(const std::vector<StatusCondition>& conditions, const Json& before,
                                  std::int64_t generation, WallTime now);

// status.reason: the code, and what the sentence beside it is about.
[[nodiscard]] Json fields_of(const Reason& why);
// The text to write in place of the stored one, of an object of that kind; nullopt: it says the same, but for what the
// API server drops (World::dropped_status_fields).
[[nodiscard]] std::optional<std::string> text_to_write(const World& world, const std::string& kind,
                                                       std::string_view stored, const Json& status);

// --- The sums over one policy's rollouts (policy_status.cc adds them up), and the conditions (policy_conditions.cc)
// and Events (progress.cc) that follow from them.

// The node of a policy that has been in a change for the longest time.
struct OldestInProgress {
  std::string node;  // Empty: no node is in a change.
  WallTime since{};
};

struct PolicySum {
  const SharingPolicy* policy = nullptr;
  Tally tally;
  std::map<std::string, std::set<std::string>> blocked;
  std::set<std::string> targets;
  std::set<std::string> failed;
  // Its nodes by Bucket: in a change of any cause, drifting, or with missing devices.
  std::array<std::vector<std::string>, kBuckets> nodes;
  [[nodiscard]] const std::vector<std::string>& in(Bucket bucket) const {
    return nodes[static_cast<std::size_t>(bucket)];
  }
  std::vector<std::string> assumed;  // RolloutView::assumed()
  std::optional<Gate> first_closed;  // Of its rollouts with work.
  // Profiles that do not parse: the object that each concerns, and what is wrong.
  std::vector<std::pair<ObjectRef, std::string>> invalid;
  std::vector<std::string> breaking;  // Nodes that would break.
  std::string loss;                   // What an announced change takes from its nodes.
  std::string unstaged;               // Why a change is not staged in waves.
  std::string unread_owner;           // ClusterPolicy that cannot be read.
  std::string unstaged_owner;         // ClusterPolicy that `unstaged` concerns.
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
  OldestInProgress oldest;
  std::map<std::string, std::set<std::string>> contested;  // Label that another client keeps changing -> nodes.
};

// The first five of them, and how many more.
[[nodiscard]] std::string join_names(const auto& names) {
  return first_names({names.begin(), names.end()});
}
// Why such nodes are not changed, and the command that changes them.
[[nodiscard]] std::string preexisting_drift_text(std::string_view nodes, std::string_view policy);
[[nodiscard]] std::string unproven_text(std::string_view nodes, std::string_view policy);
// The condition Progressing of a deleted policy that waits for its nodes under the finalizer; nullopt for others.
[[nodiscard]] std::optional<StatusCondition> reverting(const Pass& pass, const SharingPolicy& policy);
// Ready, Progressing, and the others. `before`: the present status, because some stay once a policy has had them.
[[nodiscard]] std::vector<StatusCondition> conditions_of(const Pass& pass, const PolicySum& sum, const Json& before);
// profileKey, estimatedCompletion and oldestInProgress of a policy's status. `stopped`: by people, failures, windows or
// workloads, so that the time at which it continues cannot be predicted. `before`: the present status, because an
// estimate changes only when another node is done, or when the estimated time has passed.
void add_progress(Pass& pass, const PolicySum& sum, bool stopped, const Json& before, Json& status);

// Events for what the status reports now and did not report before.
void report_changes(Pass& pass, const PolicySum& sum, const Json& before, const Json& after);

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

// Of a SharingRollout whose revision is the view's target.
[[nodiscard]] RolloutPhase rollout_phase_of(const RolloutView& view, const SharingRollout& rollout);

// What keeps a node in a change from showing its profile, as its rollout has it; null: nothing.
[[nodiscard]] const ChangeTrouble* trouble_in_change(const Pass& pass, const std::string& node,
                                                     const NodeAssessment& assessment);
// Removes from the list of nodes in a SharingRollout's status those that have not failed, when another revision
// replaces it: no node waits for it any more. Its counts stay as they were, because they show how far it came.
void keep_failed_nodes(Json& status);

}  // namespace gso
