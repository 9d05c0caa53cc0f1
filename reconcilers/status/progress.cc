// Progress of a policy's change: its target, its estimated end, its oldest node in progress.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/cluster/record_store.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/rollout/managed_keys.h"
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/status/next_status.h"
#include "reconcilers/status/status.h"

namespace gso {

namespace {

// Extrapolated from the pace since `pace` began, and rounded up to the minute because it is not more precise.
std::optional<WallTime> extrapolate(const Json& rollout, WallTime now) {
  const Json pace = object_at(rollout, "pace");
  const Json counts = object_at(rollout, "counts");
  const auto started = k8s::parse_rfc3339(text_at(pace, "since"));
  if (!started) return std::nullopt;
  const std::int64_t done = number_at(counts, "updated") - number_at(pace, "updated");
  const std::int64_t left = number_at(counts, "pending") + number_at(counts, "inProgress");
  if (done <= 0 || left <= 0 || now <= *started) return std::nullopt;
  using Seconds = std::chrono::duration<double>;
  const Seconds needed = Seconds(now - *started) * (static_cast<double>(left) / static_cast<double>(done));
  constexpr auto kNoEstimate = std::chrono::hours(24 * 365);
  // The pace of such a slow rollout does not predict its end.
  if (needed > kNoEstimate) return std::nullopt;
  return std::chrono::ceil<std::chrono::minutes>(now + std::chrono::ceil<std::chrono::seconds>(needed));
}

}  // namespace

void add_progress(Pass& pass, const PolicySum& sum, bool stopped, const Json& before, Json& status) {
  const SharingPolicy& policy = *sum.policy;
  if (policy.config_map_key) status["profileKey"] = *policy.config_map_key;
  if (policy.inline_profile) status["profileKey"] = inline_profile_key(policy.meta.name, *policy.inline_profile);
  if (!sum.oldest.node.empty()) {
    WallTime since = sum.oldest.since;
    // A new leader did not observe the start; the status has it.
    const Json known = object_at(before, "oldestInProgress");
    if (text_at(known, "node") == sum.oldest.node)
      since = std::min(since, k8s::parse_rfc3339(text_at(known, "since")).value_or(since));
    status["oldestInProgress"] = {{"node", sum.oldest.node}, {"since", k8s::format_time(since)}};
  }
  const SharingRollout* rollout = sum.rollout.empty() ? nullptr : pass.s.world.rollouts.find(sum.rollout);
  if (rollout == nullptr || sum.tally.changing == 0 || stopped) return;
  const auto known = k8s::parse_rfc3339(text_at(before, "estimatedCompletion"));
  const bool same = text_at(before, "currentRollout") == sum.rollout &&
                    number_at(object_at(before, "nodes"), "upToDate") == sum.tally.settled;
  const auto fresh = extrapolate(parse_status(rollout->status_json), pass.s.now);
  const auto estimate = fresh && known && same && *known > pass.s.now ? known : fresh;
  if (estimate) status["estimatedCompletion"] = k8s::format_time(*estimate);
}

namespace {

// Why the label of one node is not reverted now; nullopt: it will be.
std::optional<Reason> revert_obstacle(const Pass& pass, const std::string& name, const NodeAssessment& a) {
  const Node* node = pass.s.world.nodes.find(name);
  if (node != nullptr && !a.holder.empty()) return Reason{a.holder, describe_holder(a.holder, *node)};
  if (a.is_blocked()) return a.obstacle;
  const SharingPolicy& governs = pass.index.policy(pass.s.world, a.policy.view());
  if (pass.s.settings.mode_of(governs) == PolicyMode::observe)
    return Reason{kObserve, fmt::format("policy {}, which governs it now, is in mode Observe", a.policy.view())};
  RolloutView* rollout = pass.rollouts == nullptr ? nullptr : find_rollout(pass, pass.index.rollout_key_of(a));
  return rollout == nullptr || a.phase != Phase::pending ? std::nullopt : rollout->standstill();
}

// What keeps the nodes with a label of that policy from being reverted, if something keeps each of them: the first by
// name, of what `of` says of one. nullopt: some are reverted.
std::optional<std::pair<std::string, Reason>> first_of_all(const Pass& pass, const std::string& policy,
                                                           const auto& of) {
  std::optional<std::pair<std::string, Reason>> out;
  for (const auto& [name, node] : pass.index.nodes) {
    if (!node.assessment || node.assessment->label_by != policy) continue;
    std::optional<std::pair<std::string, Reason>> found = of(std::string(name.view()), *node.assessment);
    if (!found) return std::nullopt;
    if (!out || found->first < out->first) out = std::move(found);  // The nodes are in no order.
  }
  return out;
}

// The first node with a label of that policy, and why none of them is reverted now; nullopt: some are.
std::optional<std::pair<std::string, Reason>> standing_revert(const Pass& pass, const std::string& policy) {
  return first_of_all(pass, policy, [&](const std::string& name, const NodeAssessment& a) {
    std::optional<Reason> why = revert_obstacle(pass, name, a);
    return why ? std::optional(std::pair(name, *std::move(why))) : std::nullopt;
  });
}

// The policy that governs nodes with a label of that one now, and its closed gate, which they wait for; nullopt: some
// do not wait for one.
std::optional<std::pair<std::string, Reason>> first_gate_before_reverts(const Pass& pass, const std::string& policy) {
  return first_of_all(pass, policy, [&](const std::string& /*name*/, const NodeAssessment& a) {
    RolloutView* rollout = pass.rollouts == nullptr ? nullptr : find_rollout(pass, pass.index.rollout_key_of(a));
    const bool waits = rollout != nullptr && a.phase == Phase::pending && a.left_policy == LeftPolicy::revert &&
                       !rollout->gate().is_open() && !rollout->waits_briefly();
    return waits ? std::optional(std::pair(std::string(a.policy.view()), rollout->gate().why())) : std::nullopt;
  });
}

constexpr std::string_view kReverting = "Reverting";
constexpr std::string_view kLetGo = "to delete the policy without a revert, set spec.deletionPolicy: Retain";

std::string unserved_text(const std::vector<std::string>& nodes) {
  const bool one = nodes.size() == 1;
  return fmt::format("{} still {} its label and {} no device plugin with profiles: it is reverted once there is one",
                     first_names(nodes), one ? "has" : "have", one ? "has" : "have");
}

// Why the reverts of a deleted policy do not go on, with the code "Reverting" if they do. `count`: how many nodes have
// its label; `unserved`: more of them.
Reason why_reverting(const Pass& pass, const SharingPolicy& policy, std::int64_t count,
                     const std::vector<std::string>& unserved) {
  const std::string& name = policy.meta.name;
  const std::string nodes = fmt::format("{} still ha{} its label", counted(count, "node"), count == 1 ? "s" : "ve");
  if (pass.s.settings.rollouts == PolicyMode::observe)
    return {kObserve, fmt::format("{}, and the operator runs with max-mode Observe: {}", nodes, kLetGo)};
  const bool stopped =
      pass.index.held_policies.contains(name) && pass.index.record && has_recorded_stop(*pass.index.record, policy);
  if (stopped) {
    const std::string stops = stops_of(policy);
    // Why a policy that is deleted still governs its nodes (cluster/policy_match.h).
    const Gate gate = first_gate_in_spec(policy);
    return {
        gate == Gate::open ? kPolicyGone : reason_of(gate),
        fmt::format("{}, and the operator does not revert nodes while the policy has a stop ({}). Remove the stop from "
                    "the policy; {}",
                    nodes, stops.empty() ? "a paused or aborted rollout" : stops, kLetGo)};
  }
  if (const auto waits = first_gate_before_reverts(pass, name)) {
    const auto& [governing, gate] = *waits;
    const std::string_view them = count == 1 ? "it" : "them";
    return {gate.code, fmt::format("{}, and policy {}, which governs {} now, does not let {} start: {}; {}", nodes,
                                   governing, them, them, gate.message, kLetGo)};
  }
  const std::string others = unserved.empty() ? "" : "; " + unserved_text(unserved);
  if (const auto standing = standing_revert(pass, name)) {
    const auto& [node, why] = *standing;
    return {why.code, fmt::format("{}, which the operator does not revert now: {}: {}{}; {}", nodes, node, why.message,
                                  others, kLetGo)};
  }
  return {kReverting, fmt::format("{}, which the operator reverts first{}; {}", nodes, others, kLetGo)};
}

}  // namespace

std::optional<StatusCondition> reverting(const Pass& pass, const SharingPolicy& policy) {
  const auto left = pass.index.labelled.find(policy.meta.name);
  const bool has_finalizer = std::ranges::find(policy.finalizers, kRevertFinalizer) != policy.finalizers.end();
  if (!policy.meta.deletion_timestamp || !has_finalizer) return std::nullopt;
  const std::vector<std::string> unserved = unserved_with_label_of(pass, policy.meta.name);
  if (left != pass.index.labelled.end()) {
    Reason why = why_reverting(pass, policy, left->second, unserved);
    const bool goes_on = why.code == kReverting;
    return StatusCondition("Progressing", goes_on, std::move(why));
  }
  const std::vector<std::string> unknown = nodes_of_unknown_owner(pass);
  if (unknown.empty() && unserved.empty()) return std::nullopt;
  Reason why("Unmanaged", unserved.empty() ? "" : fmt::format("{}; {}", unserved_text(unserved), kLetGo));
  if (!unknown.empty()) {
    why = {kOwnedUnreadable,
           fmt::format("whether nodes still have its label is unknown: annotation {} cannot be read on {}",
                       kOwnedAnnotation, first_names(unknown))};
  }
  return StatusCondition("Progressing", false, std::move(why));
}

// --- The Events for changes of a policy's status: each is sent once, with the condition.

namespace {

// The present condition if it is False and its text has changed; empty otherwise.
std::string newly_false(const Json& before, const Json& after, std::string_view type) {
  std::string now = false_condition(after, type);
  return now == false_condition(before, type) ? std::string() : now;
}

std::string message_of(const std::string& condition) {
  return condition.substr(condition.find(": ") + 2);
}

ObjectRef state_ref(const Pass& pass) {
  return config_map_ref({pass.s.settings.operator_namespace, pass.s.settings.state_config_map});
}

void report_unstaged(Pass& pass, const PolicySum& sum, const Json& condition) {
  const std::string reason = text_at(condition, "reason");
  const bool unread = reason == kClusterPolicyForbidden;
  const std::string& owner_name = unread ? sum.unread_owner : sum.unstaged_owner;
  ObjectRef about = owner_name.empty() ? state_ref(pass) : cluster_policy_ref(owner_name);
  if (const ClusterPolicy* owner = pass.s.world.clusterpolicies.find(owner_name)) about.uid = owner->meta.uid;
  pass.event(std::move(about), reason != kUnstagedClusterPolicy, reason, unread ? "Watch" : "Verify",
             text_at(condition, "message"));
}

}  // namespace

void report_changes(Pass& pass, const PolicySum& sum, const Json& before, const Json& after) {
  if (!newly_false(before, after, "ConfigValid").empty())
    for (const auto& [object, text] : sum.invalid)
      pass.event(object, true, kConfigInvalid, "Refuse", text + ". The operator restarts no pod with it");
  if (const std::string waits = newly_false(before, after, "Progressing"); waits.starts_with(kObserve)) {
    pass.event(pass.s.world.policies_served ? policy_ref(*sum.policy) : state_ref(pass), false, kWouldRoll, "Roll",
               message_of(waits));
  }
  const auto contested = [](const Json& status) {
    return text_at(condition_in(status, kLabelsContestedCondition), "status") == "True";
  };
  if (contested(after) && !contested(before)) {
    pass.event(pass.s.world.policies_served ? policy_ref(*sum.policy) : state_ref(pass), true, kLabelContested, "Label",
               text_at(condition_in(after, kLabelsContestedCondition), "message"));
  }
  if (!newly_false(before, after, "Staged").empty()) report_unstaged(pass, sum, condition_in(after, "Staged"));
}

// --- The operator's options in its state ConfigMap, so that the commands of people judge nodes by the same limits.

void plan_options_text(Pass& pass) {
  const std::optional<std::string>& wanted = pass.s.settings.options_text;
  const ConfigMap* state = pass.s.world.configmaps.find(state_key(pass.s.settings));
  if (!wanted || state == nullptr) return;
  const auto present = key_text(state, kOptionsKey);
  if (present ? *present == *wanted : wanted->empty()) return;
  pass.add(write_state(pass.s.settings, {{std::string(kOptionsKey), *wanted}}), "OptionsChanged",
           "commands judge by the options of the operator");
}

}  // namespace gso
