// Conditions of a policy that follow from its sums, and from the policies beside it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/status/next_status.h"
#include "reconcilers/status/status.h"

namespace gso {

std::string join_names(const std::vector<std::string>& names) {
  return first_names(names);
}

std::string preexisting_drift_text(std::string_view nodes, std::string_view policy) {
  return fmt::format(
      "nodes did not show their profile when the operator first saw them and are not changed: {}. To roll them out: "
      "`gpu-sharing-operator rollout start {} --adopt`",
      nodes, policy);
}

std::string unproven_text(std::string_view nodes, std::string_view policy) {
  return fmt::format(
      "the operator's record was lost during the rollout, and the pods of these nodes might be older than the text: "
      "{}. To roll them out: `gpu-sharing-operator rollout start {} --adopt`",
      nodes, policy);
}

std::string text_by_key(const std::map<std::string, std::string>& texts) {
  const bool alike =
      std::ranges::all_of(texts, [&](const auto& entry) { return entry.second == texts.begin()->second; });
  std::string out;
  for (const auto& [key, text] : texts) {
    if (alike) return text;
    out += fmt::format("{}key {}: {}", out.empty() ? "" : "; ", key.empty() ? "(none)" : key, text);
  }
  return out;
}

StatusCondition config_valid_of(const PolicySum& sum) {
  if (sum.invalid.empty()) return {"ConfigValid", true, "Valid", "every profile in use parses"};
  std::string message;
  for (const std::string& text : sum.invalid) message += (message.empty() ? "" : "; ") + text;
  return {"ConfigValid", false, kConfigInvalid, message};
}

StatusCondition degraded_of(const PolicySum& sum) {
  if (!sum.failed.empty()) {
    return {"Degraded", true, kVerificationFailed, "failed: " + join_names({sum.failed.begin(), sum.failed.end()})};
  }
  if (!sum.rolled_back.empty()) return {"Degraded", true, kRolledBack, sum.rolled_back};
  if (!sum.failed_before.empty()) return {"Degraded", true, kMaxFailures, sum.failed_before};
  if (!sum.unhealthy.empty()) {
    return {"Degraded", true, kDeviceUnhealthy,
            fmt::format("nodes serve fewer devices than they have: {}; {}", join_names(sum.unhealthy),
                        sum.missing_devices)};
  }
  return {"Degraded", false, "AsExpected", "no node failed"};
}

StatusCondition standing_condition(const PolicySum& sum) {
  const Reason& why = sum.standing.front().second;
  if (sum.standing.size() == 1) return {"Progressing", false, why};
  std::string message;
  Facts about;
  for (const auto& [key, other] : sum.standing) {
    const std::string reason = other.code == why.code ? "" : other.code + ": ";
    message +=
        fmt::format("{}key {}: {}{}", message.empty() ? "" : "; ", key.empty() ? "(none)" : key, reason, other.message);
    about.add(other.facts());
  }
  return {"Progressing", false, Reason(why.code, std::move(message), std::move(about))};
}

StatusCondition left_mid_change_condition(const PolicySum& sum) {
  return {"Progressing", false, kObserve,
          fmt::format("mid-change and not continued (drained nodes stay cordoned): {}; the operator runs with max-mode "
                      "Observe. To finish the changes, set max-mode Enforce. `cleanup` uncordons the nodes and removes "
                      "the operator's marks; nodes keep what they run",
                      join_names(sum.left_mid_change))};
}

namespace {

// "a01 (label x is 4, expected 8)", "a01, a02 (a01: label x is 4, expected 8)"
std::string drifting_with_first(const PolicySum& sum) {
  const std::string nodes = join_names(sum.drifting);
  if (sum.drift.empty()) return nodes;
  return sum.drifting.size() == 1 ? fmt::format("{} ({})", nodes, sum.drift)
                                  : fmt::format("{} ({}: {})", nodes, sum.drifting.front(), sum.drift);
}

// Which nodes, what the first of them shows instead, and what follows.
std::string drift_condition_text(const PolicySum& sum) {
  const bool one = sum.drifting.size() == 1;
  std::string out =
      fmt::format("{} {}", join_names(sum.drifting),
                  one ? "does not show the profile that it runs" : "do not show the profile that they run");
  if (!sum.drift.empty()) {
    const std::string of_first = one ? std::string() : fmt::format(". For example {}", sum.drifting.front());
    out += fmt::format("{}: {}", of_first, sum.drift);
  }
  if (!sum.is_repaired) return out;
  return fmt::format("{}. If that lasts for {} (verifyTimeout), the operator restarts {} pods", out,
                     k8s::format_go_duration(sum.policy->rollout.verify_timeout), one ? "its" : "their");
}

StatusCondition ready_without_nodes(const PolicySum& sum) {
  if (!sum.awaited.empty()) {
    return {"Ready", false, kLabelsMissing,
            fmt::format("governs no node, but selects by labels that are missing on: {}. Check the pods of GPU Feature "
                        "Discovery and Node Feature Discovery",
                        join_names(sum.awaited))};
  }
  if (!sum.left_to_nos.empty()) {
    return {"Ready", true, "NoNodes",
            "governs no node: nos partitions the GPUs of the selected nodes, or other policies govern them"};
  }
  if (!sum.gone.empty()) {
    return {"Ready", true, "NoNodes",
            fmt::format("governs no node: the stop of a policy that was deleted still applies to nodes that this one "
                        "selects (finding {}): {}",
                        kPolicyGone, join_names(sum.gone))};
  }
  return {"Ready", true, "NoNodes", "selects no GPU node, or other policies govern all selected nodes"};
}

}  // namespace

StatusCondition ready_of(const PolicySum& sum) {
  if (std::string problem = selector_problem(*sum.policy); !problem.empty()) {
    return {"Ready", false, kSelectorOnSharingLabel, std::move(problem)};
  }
  if (sum.tally.total == 0) return ready_without_nodes(sum);
  if (!sum.rolled_back.empty()) return {"Ready", false, kRolledBack, sum.rolled_back};
  if (!sum.assumed.empty()) {
    return {"Ready", false, kUnproven, unproven_text(join_names(sum.assumed), sum.policy->meta.name)};
  }
  if (sum.tally.settled == sum.tally.total) return {"Ready", true, "UpToDate", "every node runs and shows its profile"};
  for (const auto& [reason, nodes] : sum.blocked) {
    return {"Ready", false, reason, "blocked: " + join_names({nodes.begin(), nodes.end()})};
  }
  if (!sum.failed.empty()) {
    return {"Ready", false, kVerificationFailed,
            "failed to verify: " + join_names({sum.failed.begin(), sum.failed.end()})};
  }
  const std::int64_t moving = sum.tally.moving();
  const std::int64_t work = sum.tally.of(Phase::pending) + moving;
  if (work > 0) {
    const std::string unsettled = first_names(sum.unsettled, static_cast<std::size_t>(work));
    const bool waits = moving == 0 && !sum.closed.empty() && sum.closed.front().second.gate == Gate::observe;
    if (waits || !sum.left_mid_change.empty()) {
      return {"Ready", false, kObserve,
              fmt::format("not up to date, and not changed in mode Observe ({} of {}): {}", work, sum.tally.total,
                          unsettled)};
    }
    return {"Ready", false, "Updating",
            fmt::format("not up to date yet ({} of {}): {}", work, sum.tally.total, unsettled)};
  }
  if (sum.unlabelled > 0 && std::cmp_equal(sum.unlabelled, sum.drifting.size())) {
    return {"Ready", false, kLabelsMissing,
            fmt::format("not verified without labels: {} ({})", join_names(sum.drifting), sum.labels_missing)};
  }
  if (sum.drifting.empty() && !sum.excused.empty()) {
    return {"Ready", false, sum.excused_for,
            "nodes do not show the profile that they run, and are not repaired now: " + join_names(sum.excused)};
  }
  if (sum.drifting_since_install > 0 && std::cmp_equal(sum.drifting_since_install, sum.drifting.size())) {
    return {"Ready", false, kPreexistingDrift, preexisting_drift_text(drifting_with_first(sum), sum.policy->meta.name)};
  }
  return {"Ready", false, kDrift, drift_condition_text(sum)};
}

std::optional<StatusCondition> overlapped_of(const Pass& pass, const PolicySum& sum, const nlohmann::json& before) {
  const std::string message = overlap_text(pass.s.world, pass.index, *sum.policy);
  if (!message.empty()) return StatusCondition{"Overlapped", true, kPolicyOverlap, message};
  if (condition_in(before, "Overlapped").is_null()) return std::nullopt;
  return StatusCondition{"Overlapped", false, "NoOverlap", "no other policy governs a node that this one selects"};
}

std::optional<StatusCondition> left_to_nos_of(const PolicySum& sum, const nlohmann::json& before) {
  const std::string type(kPartitionedByNos);
  if (!sum.left_to_nos.empty()) {
    return StatusCondition{type, true, type,
                           fmt::format("nos partitions the GPUs of {} that this policy selects (label {}), and the "
                                       "operator does not change {}: {}",
                                       counted(sum.left_to_nos.size(), "node"), kNosPartitioning,
                                       sum.left_to_nos.size() == 1 ? "it" : "them", join_names(sum.left_to_nos))};
  }
  if (condition_in(before, type).is_null()) return std::nullopt;
  return StatusCondition{type, false, "NoNodes", "nos partitions no node that this policy selects"};
}

std::optional<StatusCondition> contested_of(const PolicySum& sum, const nlohmann::json& before) {
  const std::string type(kLabelsContestedCondition);
  std::string message;
  for (const auto& [label, nodes] : sum.contested) {
    message += fmt::format("{}on {}: {}", message.empty() ? "" : "; ", join_names({nodes.begin(), nodes.end()}),
                           contested_text(label, *nodes.begin()));
  }
  if (!message.empty()) return StatusCondition{type, true, kLabelContested, std::move(message)};
  if (condition_in(before, type).is_null()) return std::nullopt;
  return StatusCondition{type, false, "NotContested", "no other client keeps changing labels that the operator wrote"};
}

std::optional<StatusCondition> selector_condition_of(const PolicySum& sum, const nlohmann::json& before) {
  constexpr std::string_view kType = "SelectorStable";
  const std::vector<Reason> notes = selector_notes(*sum.policy);
  std::string message;
  for (const Reason& note : notes) message += (message.empty() ? "" : "; ") + note.message;
  if (!notes.empty()) {
    return StatusCondition{kType, false, notes.front().code, std::move(message)};
  }
  if (condition_in(before, kType).is_null()) return std::nullopt;
  return StatusCondition{kType, true, "Stable", "the selector uses no label that changes by itself"};
}

std::optional<StatusCondition> staged_of(const PolicySum& sum, const nlohmann::json& before) {
  if (!sum.breaking.empty()) {
    return StatusCondition{"Staged", false, kNodesWouldBreak,
                           fmt::format("{}. These nodes will lose their GPUs at the next restart: {}", sum.break_reason,
                                       join_names(sum.breaking))};
  }
  if (!sum.unstaged.empty()) {
    return StatusCondition{"Staged", false, kUnstagedClusterPolicy,
                           sum.unstaged + ": the operator verifies this change but does not stage it"};
  }
  if (!sum.unread_owner.empty()) {
    return StatusCondition{
        "Staged", false, kClusterPolicyForbidden,
        fmt::format("the operator is not allowed to read ClusterPolicy {}: it sees an announced change only once the "
                    "DaemonSets have it, and cannot name nodes that the change would break; grant get, list and watch "
                    "on clusterpolicies.nvidia.com",
                    sum.unread_owner)};
  }
  if (condition_in(before, "Staged").is_null()) return std::nullopt;
  return StatusCondition{"Staged", true, "Staged", "changes are staged in the policy's waves"};
}

// --- Phases and conditions in status texts.

using Json = nlohmann::json;

void keep_failed_nodes(Json& status) {
  const auto nodes = status.find("nodes");
  if (nodes == status.end() || !nodes->is_array()) return;
  Json failed = Json::array();
  for (Json& node : *nodes) {
    if (text_at(node, "state") == kStateFailed) failed.push_back(std::move(node));
  }
  if (failed.empty()) {
    status.erase("nodes");
  } else {
    *nodes = std::move(failed);
  }
}

Json condition_list(const std::vector<StatusCondition>& conditions, const Json& before, std::int64_t generation,
                    WallTime now) {
  Json out = Json::array();
  for (const StatusCondition& condition : conditions) {
    const std::string status = condition.unknown ? "Unknown" : condition.holds ? "True" : "False";
    std::string since = k8s::format_time(now);
    const Json known = condition_in(before, condition.type);
    if (text_at(known, "status") == status) since = text_at(known, "lastTransitionTime", since);
    Json entry = {{"type", condition.type},
                  {"status", status},
                  {"reason", condition.why.code},
                  {"message", cut_message(condition.why.message)},
                  {"lastTransitionTime", since}};
    if (generation > 0) entry["observedGeneration"] = generation;
    out.push_back(std::move(entry));
  }
  return out;
}

// --- Policies that govern nodes which another policy selects too, for people.

namespace {

// Why `winner` comes before `loser`, by the order of policies_in_order().
std::string_view why_it_comes_first(const SharingPolicy& winner, const SharingPolicy& loser) {
  if (winner.priority > loser.priority) return "its priority is higher";
  if (winner.meta.creation_timestamp < loser.meta.creation_timestamp) return "it is older";
  return "priority and age are equal, and its name sorts first";
}

std::string why_it_governs(const World& world, const FleetIndex::Impl& index, const std::string& governing,
                           const SharingPolicy& policy) {
  if (policy.meta.deletion_timestamp) return fmt::format("policy {} is being deleted", policy.meta.name);
  const SharingPolicy& winner = index.policy(world, governing);
  const std::string order(why_it_comes_first(winner, policy));
  if (!index.held_policies.contains(governing)) return order;
  const std::string stops = stops_of(winner);
  return fmt::format("it is deleted, but its stop is still in effect{}, and {}",
                     stops.empty() ? std::string() : fmt::format(" ({})", stops), order);
}

// `others`: the policies that govern nodes which `policy` selects, with their number.
std::string text_of(const World& world, const FleetIndex::Impl& index, const SharingPolicy& policy,
                    const std::map<std::string, std::int64_t>& others) {
  std::string out;
  for (const auto& [governing, count] : others) {
    out += fmt::format("{}{} of the selected nodes {} governed by ", out.empty() ? "" : "; ", count,
                       count == 1 ? "is" : "are");
    out += governing.empty() ? "no policy"
                             : fmt::format("policy {}: {}", governing, why_it_governs(world, index, governing, policy));
  }
  return out;
}

}  // namespace

std::string overlap_text(const World& world, const FleetIndex::Impl& index, const SharingPolicy& policy) {
  const std::string& name = policy.meta.name;
  std::map<std::string, std::int64_t> others;
  for (auto it = index.overlaps.lower_bound({name, ""}); it != index.overlaps.end() && it->first.first == name; ++it)
    others.emplace(it->first.second, it->second);
  return text_of(world, index, policy, others);
}

std::string other_governors_text(const World& world, const FleetIndex::Impl& index, const SharingPolicy& policy) {
  std::map<std::string, std::int64_t> others;
  for (const auto& [name, indexed] : index.nodes) {
    const Node* node = indexed.assessment ? world.nodes.find(name) : nullptr;
    if (node == nullptr || indexed.assessment->policy == policy.meta.name || !policy_selects(policy, *node)) continue;
    ++others[std::string(indexed.assessment->policy.view())];
  }
  return text_of(world, index, policy, others);
}

}  // namespace gso
