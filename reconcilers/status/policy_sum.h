// The sums over one policy's rollouts, and the conditions that follow from them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/status/status.h"

namespace gso {

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
  // Of `drifting`: nodes that drifted already when the operator first read them.
  std::int64_t drifting_since_install = 0;
  std::vector<std::pair<RolloutKey, GateState>> closed;  // Rollouts with work and a closed gate.
  std::vector<std::string> invalid;                      // Messages of profiles that do not parse.
  std::vector<ObjectRef> invalid_objects;                // The object that each of `invalid` concerns.
  std::vector<std::string> breaking;                     // Nodes that would break.
  std::string break_reason;
  std::string unstaged;        // Why a change is not staged in waves.
  std::string unread_owner;    // ClusterPolicy that cannot be read.
  std::string unstaged_owner;  // ClusterPolicy that `unstaged` concerns.
  std::string rollout;
  bool stopped = false;   // `rollout` is stopped by people, failures or windows.
  std::string exhausted;  // Why no waiting node has a slot; empty if one has.
  bool has_slot = false;
  std::map<std::string, std::string> waits;  // Key -> what its nodes wait for.
  // Nodes of keys for which no other node waits, and why.
  std::map<std::string, std::string> deferred;
  // Nodes that cannot start, of groups in which no other node waits.
  std::vector<std::string> not_ready, waits_held;
  std::string stalled;        // DaemonSets that stopped replacing pods.
  std::string rolled_back;    // The policy's inline profile failed and was rolled back.
  std::string failed_before;  // A recorded failure whose nodes are gone.
  std::map<std::string, std::map<std::string, std::string>> waiting;  // Reason -> nodes in a change -> blocking pods.
  // The same for nodes that the operator must not change.
  std::map<std::string, std::map<std::string, std::string>> out_of_reach;
  // stopped_rollouts: rollouts that only wait for such nodes.
  std::int64_t rollouts_with_work = 0, stopped_rollouts = 0;
  std::vector<std::string> unhealthy;  // Nodes with fewer devices than before, and what the first one shows.
  std::string missing_devices;
  OldestInProgress oldest;
  // Nodes in a change while the operator runs with max-mode Observe.
  std::vector<std::string> left_mid_change;
  std::vector<std::string> left_to_nos;  // Nodes that it selects and whose GPUs nos partitions.
  // Nodes in a change that cannot continue without a person; included in `waiting`.
  std::int64_t stuck = 0;
  // Nodes in a change that the operator is not allowed to write: refused_write().
  std::int64_t refused = 0;
};

// The first five of them, and how many more.
[[nodiscard]] std::string join_names(const std::vector<std::string>& names);
// The first of them and why it is deferred, and how many more (`deferred` is not empty).
[[nodiscard]] std::string first_deferred(const std::map<std::string, std::string>& deferred);
// What the Pending nodes wait for in addition to those in progress; empty: they can start.
[[nodiscard]] std::string waits_text(const PolicySum& sum);

[[nodiscard]] StatusCondition config_valid_of(const PolicySum& sum);
[[nodiscard]] StatusCondition degraded_of(const PolicySum& sum);
// The condition Progressing when the operator runs with max-mode Observe and has left nodes mid-change
// (`left_mid_change`).
[[nodiscard]] StatusCondition left_mid_change_condition(const PolicySum& sum);
[[nodiscard]] StatusCondition ready_of(const PolicySum& sum);
// nullopt if nos partitions no node that the policy selects, and never did (`before`: the present status).
[[nodiscard]] std::optional<StatusCondition> left_to_nos_of(const PolicySum& sum, std::string_view before);
// What the policy's selector does that its author might not mean.
[[nodiscard]] std::optional<StatusCondition> selector_condition_of(const PolicySum& sum, std::string_view before);
// nullopt if every change is staged in waves, and always was (`before`: the present status).
[[nodiscard]] std::optional<StatusCondition> staged_of(const PolicySum& sum, std::string_view before);

// Events for what the status reports now and did not report before.
void report_changes(Pass& pass, const PolicySum& sum, std::string_view before, std::string_view after);

}  // namespace gso
