// What one policy's units add up to, and the conditions that follow from it.
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
  std::vector<std::string> unsettled;  // The first nodes on their way, and after them the first of those that wait.
  std::vector<std::string> drifting;   // Nodes that do not show what they run, and what the first one shows.
  std::string drift;
  std::int64_t drifting_since_install = 0;               // Of `drifting`: they did so when they were seen first.
  std::vector<std::pair<RolloutKey, GateState>> closed;  // Units with work and a closed gate.
  std::vector<std::string> invalid;                      // Messages of profiles that do not parse.
  std::vector<ObjectRef> invalid_objects;                // What each of `invalid` is about.
  std::vector<std::string> breaking;                     // Nodes that would break.
  std::string break_reason;
  std::string unstaged;        // Why a change goes round the waves.
  std::string unread_owner;    // ClusterPolicy that may not be read.
  std::string unstaged_owner;  // ClusterPolicy.
  std::string rollout;
  std::string exhausted;  // Why no waiting node has a slot; empty when one has.
  bool has_slot = false;
  std::vector<std::string> not_ready, waits_held;  // Of groups where nobody else waits: nodes that cannot start.
  std::string stalled;                             // DaemonSets that replace no pod any more.
  std::string rolled_back;                         // The policy's own profile failed and was taken back.
  std::string failed_before;                       // A remembered failure whose nodes have gone.
  std::map<std::string, std::map<std::string, std::string>> waiting;  // Reason -> nodes in flight -> who keeps them.
  std::map<std::string, std::map<std::string, std::string>> out_of_reach;  // The same of nodes that nobody may touch.
  std::int64_t units_with_work = 0, units_that_stand = 0;                  // The latter wait for those alone.
  std::vector<std::string> unhealthy;  // Nodes with fewer devices than before, and what the first one shows.
  std::string sickness;
  OldestInFlight oldest;
  std::vector<std::string> left_half_way;  // Nodes in flight where the operator may only look.
  std::vector<std::string> left_to_nos;    // Nodes that it selects and whose GPUs nos partitions.
  std::int64_t stuck = 0;                  // Nodes in flight that cannot go on, whatever time passes; among `waiting`.
  std::int64_t refused = 0;                // Nodes in flight that the operator may not write on: refused_write().
};

// The first five of them, and how many more.
[[nodiscard]] std::string join_names(const std::vector<std::string>& names);

[[nodiscard]] StatusCondition config_valid_of(const PolicySum& sum);
[[nodiscard]] StatusCondition degraded_of(const PolicySum& sum);
// Progressing, where the operator may only look at nodes that it has begun to change before (`left_half_way`).
[[nodiscard]] StatusCondition half_way_under_observe(const PolicySum& sum);
[[nodiscard]] StatusCondition ready_of(const PolicySum& sum);
// nullopt where nos partitions no node that the policy selects, and never did (`before`: the status as it stands).
[[nodiscard]] std::optional<StatusCondition> left_to_nos_of(const PolicySum& sum, std::string_view before);
// nullopt where nothing goes round the waves, and nothing ever did (`before`: the status as it stands).
[[nodiscard]] std::optional<StatusCondition> staged_of(const PolicySum& sum, std::string_view before);

// Events for what the status says from now on and did not say before.
void tell_changes(Pass& pass, const PolicySum& sum, std::string_view before, std::string_view after);

}  // namespace gso
