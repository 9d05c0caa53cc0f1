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
#include "reconcilers/rollout/repairs.h"
#include "reconcilers/status/next_status.h"
#include "reconcilers/status/status.h"

namespace gso {

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

namespace {

// One text for each profile key, or the text alone if all are equal.
std::string text_by_key(const std::map<std::string, std::string>& texts) {
  const bool alike =
      std::ranges::all_of(texts, [&](const auto& entry) { return entry.second == texts.begin()->second; });
  std::string out;
  for (const auto& [key, text] : texts) {
    if (alike) return text;
    out += fmt::format("{}key {}: {}", out.empty() ? "" : "; ", or_none(key), text);
  }
  return out;
}

// Every rollout with work stands still.
StatusCondition standing_condition(const PolicySum& sum) {
  const Reason& why = sum.standing.front().second;
  if (sum.standing.size() == 1) return {"Progressing", false, why};
  std::string message;
  Facts about;
  for (const auto& [key, other] : sum.standing) {
    const std::string reason = other.code == why.code ? "" : other.code + ": ";
    message += fmt::format("{}key {}: {}{}", message.empty() ? "" : "; ", or_none(key), reason, other.message);
    about.add(other.facts());
  }
  return {"Progressing", false, Reason(why.code, std::move(message), std::move(about))};
}

// The operator runs with max-mode Observe and has left nodes mid-change.
bool leaves_mid_change(const Pass& pass, const PolicySum& sum) {
  return pass.s.settings.rollouts == PolicyMode::observe && !sum.in(Bucket::changing).empty();
}

StatusCondition left_mid_change_condition(const PolicySum& sum) {
  return {
      "Progressing",
      false,
      {kObserve,
       fmt::format("mid-change and not continued (drained nodes stay cordoned): {}; the operator runs with max-mode "
                   "Observe. To finish the changes, set max-mode Enforce. `cleanup` uncordons the nodes and removes "
                   "the operator's marks; nodes keep what they run",
                   join_names(sum.in(Bucket::changing)))}};
}

StatusCondition progressing_of(const Pass& pass, const PolicySum& sum) {
  if (auto condition = reverting(pass, *sum.policy)) return *condition;
  if (leaves_mid_change(pass, sum)) return left_mid_change_condition(sum);
  if (sum.rollouts_with_work == 0) return {"Progressing", false, {kNothingToDo, "nothing is being changed"}};
  if (std::ssize(sum.standing) == sum.rollouts_with_work) return standing_condition(sum);
  if (sum.waits.empty()) return {"Progressing", true, {kRollingOut, text_by_key(sum.progress)}};
  std::map<std::string, std::string> texts;
  Facts about;
  for (const auto& [key, wait] : sum.waits) {
    texts.emplace(key, wait.message);
    about.add(wait.facts());
  }
  return {"Progressing", true, {kRollingOut, text_by_key(texts), std::move(about)}};
}

// Nodes that do not show what they run.
struct Drift {
  std::vector<std::string> nodes;
  std::string of_first;      // What the first one shows instead, and why it is not repaired although it could be.
  bool is_repaired = false;  // The operator restarts its pods if it does not recover.
  // Nodes that are not repaired now: name and why (NotReady, or who holds them).
  std::vector<std::string> excused;
  std::string excused_for = {};  // The reason of the first one.
};
Drift drift_of(const Pass& pass, const PolicySum& sum) {
  Drift out;
  out.nodes = sum.in(Bucket::drifting);
  for (const std::string& name : sum.in(Bucket::excused_drift)) {
    const std::string_view why = excuse_of(*pass.index.find(name));
    if (!why.empty() && out.excused.empty()) out.excused_for = why;
    if (why.empty())
      out.nodes.push_back(name);
    else
      out.excused.push_back(fmt::format("{} ({})", name, why));
  }
  if (out.nodes.empty()) return out;
  const NodeAssessment& a = *pass.index.find(out.nodes.front());
  const bool could = pass.index.nodes_in(Bucket::repairable).contains(out.nodes.front());
  const RolloutView* view = could ? find_rollout(pass, pass.index.rollout_key_of(a)) : nullptr;
  const std::string stop = view == nullptr ? std::string() : repair_stop(*view);
  out.of_first = drift_text(a) + (stop.empty() ? stop : "; not repaired: " + stop);
  out.is_repaired = could && stop.empty();
  return out;
}

// "a01 (label x is 4, expected 8)", "a01, a02 (a01: label x is 4, expected 8)"
std::string drifting_with_first(const Drift& drift) {
  const std::string name = drift.nodes.size() == 1 ? std::string() : drift.nodes.front() + ": ";
  return fmt::format("{} ({}{})", join_names(drift.nodes), name, drift.of_first);
}

// Which nodes, what the first of them shows instead, and what follows.
std::string drift_condition_text(const Drift& drift, Duration verify_timeout) {
  const bool one = drift.nodes.size() == 1;
  std::string out =
      fmt::format("{} {}", join_names(drift.nodes),
                  one ? "does not show the profile that it runs" : "do not show the profile that they run");
  if (!drift.of_first.empty()) {
    const std::string name = one ? std::string() : fmt::format(". For example {}", drift.nodes.front());
    out += fmt::format("{}: {}", name, drift.of_first);
  }
  if (!drift.is_repaired) return out;
  return fmt::format("{}. If that lasts for {} (verifyTimeout), the operator restarts {} pods", out,
                     k8s::format_go_duration(verify_timeout), one ? "its" : "their");
}

// Policies that were deleted while they had a stop, and that govern nodes which this one selects. `default` selects
// every node.
std::vector<std::string> gone_policies(const Pass& pass, const std::string& name) {
  std::vector<std::string> out;
  for (const auto& [other, policy] : pass.index.held_policies) {
    if (!policy.gone || !pass.index.policies.contains(other)) continue;
    if (name == kDefaultPolicy || pass.index.overlaps.contains({name, other})) out.push_back(other);
  }
  return out;
}

// The nodes that the index has for a policy.
const std::set<std::string>& nodes_of_policy(const std::map<std::string, std::set<std::string>>& by_policy,
                                             const SharingPolicy& policy) {
  static const std::set<std::string> kNone;
  const auto found = by_policy.find(policy.meta.name);
  return found == by_policy.end() ? kNone : found->second;
}

Reason why_without_nodes(const Pass& pass, const SharingPolicy& policy) {
  if (const auto& awaited = nodes_of_policy(pass.index.awaited, policy); !awaited.empty()) {
    return {kLabelsMissing,
            fmt::format("governs no node, but selects by labels that are missing on: {}. Check the pods of GPU Feature "
                        "Discovery and Node Feature Discovery",
                        join_names(awaited))};
  }
  if (!nodes_of_policy(pass.index.left_to_nos, policy).empty())
    return {"NoNodes", "governs no node: nos partitions the GPUs of the selected nodes, or other policies govern them"};
  if (const auto gone = gone_policies(pass, policy.meta.name); !gone.empty()) {
    return {"NoNodes", fmt::format("governs no node: the stop of a policy that was deleted still applies to nodes that "
                                   "this one selects (finding {}): {}",
                                   kPolicyGone, join_names(gone))};
  }
  return {"NoNodes", "selects no GPU node, or other policies govern all selected nodes"};
}

// Nodes need a change, or are in one: the first of those in a change, then of the Pending ones.
Reason why_unsettled(const Pass& pass, const PolicySum& sum, std::int64_t moving, std::int64_t work) {
  std::vector<std::string> unsettled;
  for (const Bucket bucket : {Bucket::changing, Bucket::self_loaded, Bucket::following})
    unsettled.insert(unsettled.end(), sum.in(bucket).begin(), sum.in(bucket).end());
  for (const auto& [key, profile_rollout] : pass.index.profile_rollouts) {
    if (key.policy != sum.policy->meta.name) continue;
    for (const auto& [product, group] : profile_rollout.groups) {
      for (const auto& [available, name] : group.pending) {
        if (unsettled.size() >= kMostNames) break;
        unsettled.push_back(name);
      }
    }
  }
  const bool observes = (moving == 0 && sum.first_closed == Gate::observe) || leaves_mid_change(pass, sum);
  return {observes ? kObserve : "Updating",
          fmt::format("not up to date{} ({} of {}): {}", observes ? ", and not changed in mode Observe" : " yet", work,
                      sum.tally.total, first_names(unsettled, static_cast<std::size_t>(work)))};
}

// Why nodes that have their target do not show it.
Reason why_drifting(const Pass& pass, const SharingPolicy& policy, const Drift& drift) {
  const auto all_drifting = [&](const auto& are) {
    return !drift.nodes.empty() &&
           std::ranges::all_of(drift.nodes, [&](const std::string& name) { return are(*pass.index.find(name)); });
  };
  if (all_drifting([](const NodeAssessment& a) { return !a.labels_missing.empty(); })) {
    return {kLabelsMissing, fmt::format("not verified without labels: {} ({})", join_names(drift.nodes),
                                        pass.index.find(drift.nodes.front())->labels_missing.view())};
  }
  if (drift.nodes.empty() && !drift.excused.empty()) {
    return {drift.excused_for,
            "nodes do not show the profile that they run, and are not repaired now: " + join_names(drift.excused)};
  }
  if (all_drifting([](const NodeAssessment& a) { return baseline_excuse(a) == kPreexistingDrift; }))
    return {kPreexistingDrift, preexisting_drift_text(drifting_with_first(drift), policy.meta.name)};
  return {kDrift, drift_condition_text(drift, policy.rollout.verify_timeout)};
}

// Why the nodes of a policy do not all run and show their profile.
Reason why_not_ready(const Pass& pass, const PolicySum& sum, const Drift& drift) {
  for (const auto& [reason, nodes] : sum.blocked) return {reason, "blocked: " + join_names(nodes)};
  if (!sum.failed.empty()) return {kVerificationFailed, "failed to verify: " + join_names(sum.failed)};
  const std::int64_t moving = sum.tally.moving();
  const std::int64_t work = sum.tally.of(Phase::pending) + moving;
  return work > 0 ? why_unsettled(pass, sum, moving, work) : why_drifting(pass, *sum.policy, drift);
}

StatusCondition ready_of(const Pass& pass, const PolicySum& sum) {
  const Drift drift = drift_of(pass, sum);  // Also says when its rollout can be repaired.
  if (std::string problem = selector_problem(*sum.policy); !problem.empty())
    return {"Ready", false, {kSelectorOnSharingLabel, std::move(problem)}};
  if (sum.tally.total == 0) {
    Reason why = why_without_nodes(pass, *sum.policy);
    const bool holds = why.code != kLabelsMissing;
    return {"Ready", holds, std::move(why)};
  }
  if (!sum.rolled_back.empty()) return {"Ready", false, {kRolledBack, sum.rolled_back}};
  if (!sum.assumed.empty())
    return {"Ready", false, {kUnproven, unproven_text(join_names(sum.assumed), sum.policy->meta.name)}};
  if (sum.tally.settled == sum.tally.total)
    return {"Ready", true, {"UpToDate", "every node runs and shows its profile"}};
  return {"Ready", false, why_not_ready(pass, sum, drift)};
}

// --- Conditions about what is wrong, or might surprise.

std::optional<Reason> failed(const Pass& pass, const PolicySum& sum) {
  if (!sum.failed.empty()) return Reason{kVerificationFailed, "failed: " + join_names(sum.failed)};
  if (!sum.rolled_back.empty()) return Reason{kRolledBack, sum.rolled_back};
  if (!sum.failed_before.empty()) return Reason{kMaxFailures, sum.failed_before};
  if (sum.in(Bucket::missing_devices).empty()) return std::nullopt;
  return Reason{
      kDeviceUnhealthy,
      fmt::format("nodes serve fewer devices than they have: {}; {}", join_names(sum.in(Bucket::missing_devices)),
                  pass.index.find(sum.in(Bucket::missing_devices).front())->missing_of_loaded.view())};
}

std::optional<Reason> invalid_profiles(const Pass& /*pass*/, const PolicySum& sum) {
  std::string message;
  for (const auto& [object, text] : sum.invalid) message += (message.empty() ? "" : "; ") + text;
  return sum.invalid.empty() ? std::nullopt : std::optional(Reason(kConfigInvalid, std::move(message)));
}

std::optional<Reason> overlap(const Pass& pass, const PolicySum& sum) {
  std::string message = overlap_text(pass.s.world, pass.index, *sum.policy);
  return message.empty() ? std::nullopt : std::optional(Reason(kPolicyOverlap, std::move(message)));
}

std::optional<Reason> unstaged(const Pass& pass, const PolicySum& sum) {
  if (!sum.breaking.empty()) {
    return Reason{kNodesWouldBreak,
                  fmt::format("{}. These nodes will lose their GPUs at the next restart: {}",
                              pass.index.find(sum.breaking.back())->would_break.view(), join_names(sum.breaking))};
  }
  if (!sum.loss.empty()) return Reason{kNodesWouldShrink, sum.loss};
  if (!sum.unstaged.empty())
    return Reason{kUnstagedClusterPolicy, sum.unstaged + ": the operator verifies this change but does not stage it"};
  if (sum.unread_owner.empty()) return std::nullopt;
  return Reason{
      kClusterPolicyForbidden,
      fmt::format("the operator is not allowed to read ClusterPolicy {}: it sees an announced change only once the "
                  "DaemonSets have it, and cannot name nodes that the change would break; grant get, list and watch "
                  "on clusterpolicies.nvidia.com",
                  sum.unread_owner)};
}

std::optional<Reason> left_to_nos(const Pass& pass, const PolicySum& sum) {
  const std::set<std::string>& nodes = nodes_of_policy(pass.index.left_to_nos, *sum.policy);
  if (nodes.empty()) return std::nullopt;
  return Reason{kPartitionedByNos,
                fmt::format("nos partitions the GPUs of {} that this policy selects (label {}), and the operator does "
                            "not change {}: {}",
                            counted(nodes.size(), "node"), kNosPartitioning, nodes.size() == 1 ? "it" : "them",
                            join_names(nodes))};
}

std::optional<Reason> contested(const Pass& /*pass*/, const PolicySum& sum) {
  std::string message;
  for (const auto& [label, nodes] : sum.contested) {
    message += fmt::format("{}on {}: {}", message.empty() ? "" : "; ", join_names(nodes),
                           contested_text(label, *nodes.begin()));
  }
  return message.empty() ? std::nullopt : std::optional(Reason(kLabelContested, std::move(message)));
}

// What the policy's selector does that its author might not mean.
std::optional<Reason> unstable_selector(const Pass& /*pass*/, const PolicySum& sum) {
  const std::vector<Reason> notes = selector_notes(*sum.policy);
  std::string message;
  for (const Reason& note : notes) message += (message.empty() ? "" : "; ") + note.message;
  return notes.empty() ? std::nullopt : std::optional(Reason(notes.front().code, std::move(message)));
}

struct ConditionRow {
  std::string_view type;
  bool holds;  // While `find` finds something.
  std::optional<Reason> (*find)(const Pass&, const PolicySum&);
  std::string_view otherwise_code;
  std::string_view otherwise;
  bool always = false;  // The policy has it from the beginning; the others once something was found.
};
constexpr ConditionRow kConditions[] = {
    {"Degraded", true, failed, "AsExpected", "no node failed", true},
    {"ConfigValid", false, invalid_profiles, "Valid", "every profile in use parses", true},
    {"Overlapped", true, overlap, "NoOverlap", "no other policy governs a node that this one selects"},
    {"Staged", false, unstaged, "Staged", "changes are staged in the policy's waves"},
    {kPartitionedByNos, true, left_to_nos, "NoNodes", "nos partitions no node that this policy selects"},
    {kLabelsContestedCondition, true, contested, "NotContested",
     "no other client keeps changing labels that the operator wrote"},
    {"SelectorStable", false, unstable_selector, "Stable", "the selector uses no label that changes by itself"}};

}  // namespace

std::vector<StatusCondition> conditions_of(const Pass& pass, const PolicySum& sum, const Json& before) {
  std::vector<StatusCondition> out{ready_of(pass, sum), progressing_of(pass, sum)};
  for (const ConditionRow& row : kConditions)
    if (std::optional<Reason> found = row.find(pass, sum))
      out.emplace_back(row.type, row.holds, *std::move(found));
    else if (row.always || !condition_in(before, row.type).is_null())
      out.emplace_back(row.type, !row.holds, Reason(row.otherwise_code, std::string(row.otherwise)));
  return out;
}

// --- Phases and conditions in status texts.

void keep_failed_nodes(Json& status) {
  const auto nodes = status.find("nodes");
  if (nodes == status.end() || !nodes->is_array()) return;
  Json failed = Json::array();
  for (Json& node : *nodes)
    if (text_at(node, "state") == kStateFailed) failed.push_back(std::move(node));
  if (failed.empty())
    status.erase("nodes");
  else
    *nodes = std::move(failed);
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
    const Node* node = indexed.assessment ? world.nodes.find(name.view()) : nullptr;
    if (node == nullptr || indexed.assessment->policy == policy.meta.name || !policy_selects(policy, *node)) continue;
    ++others[std::string(indexed.assessment->policy.view())];
  }
  return text_of(world, index, policy, others);
}

}  // namespace gso
