#include "reconcilers/rollout/gates.h"

#include <fmt/format.h>

#include <algorithm>

#include "reconcilers/cluster/paused_config_maps.h"
#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/cluster/recorded_policies.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/maintenance_window.h"
#include "reconcilers/rollout/failures.h"
#include "reconcilers/rollout/managed_keys.h"
#include "reconcilers/rollout/restart_obstacle.h"
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/rollout/settling.h"
#include "reconcilers/rollout/stops.h"

namespace gso {

std::string_view reason_of(Gate gate) {
  switch (gate) {
    case Gate::open:
      return {};
    case Gate::observe:
      return kObserve;
    case Gate::paused:
      return "Paused";
    case Gate::aborted:
      return "Aborted";
    case Gate::undone:
      return kUndone;
    case Gate::approval:
      return "AwaitingApproval";
    case Gate::gpu_operator_updating:
      return kGpuOperatorUpdating;
    case Gate::max_failures:
      return kMaxFailures;
    case Gate::canary_drifting:
      return kCanaryDrifting;
    case Gate::mechanism_unusable:
      return "MechanismUnusable";
    case Gate::key_not_projected:
      return "KeyNotProjected";
    case Gate::outside_window:
      return kOutsideWindow;
    case Gate::settling:
      return "Settling";
    case Gate::new_attempt:
      return "NewAttempt";
  }
  return {};
}

namespace {

// The policy's own profile was rolled back, and this rollout restores its nodes. The person who approved the change
// does not need to approve its rollback.
bool goes_back(const RolloutView& rollout) {
  return taken_back(rollout.pass.index, rollout.policy, rollout.key.config_map) != nullptr &&
         !owns_key(rollout.policy, rollout.key);
}

// --- Switches that people have set.

// Of the policy and of the ConfigMap.
GateState closed_by_pause_above(RolloutView& rollout) {
  const SharingPolicy& policy = rollout.policy;
  if (policy.rollout.paused) return {Gate::paused, "spec.rollout.paused of the policy is set"};
  const Pass& pass = rollout.pass;
  const k8s::ObjectKey config_map = rollout.installation.config_map_key();
  const FleetRecord* record = pass.index.record ? &*pass.index.record : nullptr;
  const ConfigMapPause pause = pause_of(pass.s.world, record, config_map);
  if (pause != ConfigMapPause::none) return {Gate::paused, describe(pause, config_map)};
  return {};
}

Switches switches_on(const RolloutView& rollout) {
  return rollout.anew ? Switches() : switches_of(rollout.pass, rollout.key, rollout.target, rollout.object);
}

GateState closed_by_mode(RolloutView& rollout) {
  const SharingPolicy& policy = rollout.policy;
  const PolicyMode mode = rollout.pass.s.settings.mode_of(policy);
  if (mode != PolicyMode::observe) return {};
  return {Gate::observe, policy.mode != mode ? "the operator runs with max-mode Observe: nothing is changed"
                                             : "the policy's mode is Observe: nothing is changed"};
}

// It governs its nodes only because of its stop. An approved change, or one in a window, could remove them from it.
GateState closed_by_selector(RolloutView& rollout) {
  std::string problem = selector_problem(rollout.policy);
  return problem.empty() ? GateState() : GateState{Gate::paused, std::move(problem)};
}

GateState closed_by_undo(RolloutView& rollout) {
  if (!switches_on(rollout).undone) return {};
  return {Gate::undone, "rolled back by a person. Retry: `rollout start`"};
}

GateState closed_by_own_pause(RolloutView& rollout) {
  if (!switches_on(rollout).paused) return {};
  return {Gate::paused, "spec.paused of the rollout is set"};
}

GateState closed_without_approval(RolloutView& rollout) {
  const bool asks = rollout.pass.s.settings.mode_of(rollout.policy) == PolicyMode::approve && !goes_back(rollout);
  if (!asks || switches_on(rollout).approved) return {};
  const bool has_object = rollout.object != nullptr && !rollout.anew;
  return {Gate::approval, has_object ? "waits for spec.approved" : "waits for spec.approved of its SharingRollout"};
}

// --- Failures.

// onFailure: Rollback cannot write a ConfigMap that the operator does not manage, so it reports the last verified text.
std::string last_verified_text(const RolloutView& rollout) {
  constexpr std::size_t kMost = 512;  // The whole message must fit into a condition (message_text.h).
  const Index& index = rollout.pass.index;
  const RolloutKey& key = rollout.key;
  if (rollout.policy.rollout.on_failure != OnFailure::rollback || owns_key(rollout.policy, key) || !index.record)
    return {};
  const std::string verified(index.record->last_verified(key.config_map, key.key));
  if (verified.empty())
    return "; the operator does not manage ConfigMap " + key.config_map + ", and no revision was verified before";
  const auto kept = index.record->texts.find(verified);
  const std::string text = kept == index.record->texts.end() ? index.profiles.text_of(verified) : kept->second;
  if (text.empty() || text.size() > kMost) {
    return fmt::format("; the operator does not manage ConfigMap {}: restore revision {} in it", key.config_map,
                       verified);
  }
  return fmt::format("; the operator does not manage ConfigMap {}: restore the last verified text in it:\n{}",
                     key.config_map, text);
}

GateState closed_by_failures(RolloutView& rollout) {
  const std::string& why = rollout.too_many_failures();
  if (why.empty()) return {};
  return {Gate::max_failures, why + last_verified_text(rollout)};
}

// --- Time, and changes that other controllers are about to make.

GateState closed_by_window(RolloutView& rollout) {
  const WindowState windows = windows_at(rollout.policy.rollout.windows, rollout.pass.s.now);
  if (windows.until) rollout.pass.look_again_in(*windows.until - rollout.pass.s.now);
  if (windows.open) return {};
  return {Gate::outside_window,
          windows.until ? fmt::format("the next maintenance window opens at {}", k8s::format_time(*windows.until))
          : windows.problem.empty() ? "no maintenance window opens in the next five years"
                                    : "a maintenance window cannot be read: " + windows.problem};
}

GateState closed_by_announcement(RolloutView& rollout) {
  const PluginInstallation& installation = rollout.installation;
  if (!installation.announced) return {};
  if (std::string stays = lasting_difference(rollout.pass, installation); !stays.empty())
    return {Gate::gpu_operator_updating, std::move(stays)};
  return {Gate::gpu_operator_updating,
          fmt::format("ClusterPolicy {} announces config {} default {}, which its DaemonSets do not have yet",
                      installation.owner, installation.announced_config_map, installation.announced_default)};
}

// --- What this revision needs before nodes can start.

// Some of the nodes that would start next need another label.
bool relabels(const RolloutView& rollout) {
  return std::ranges::any_of(rollout.profile_rollout.groups, [&](const auto& entry) {
    const auto& pending = entry.second.pending;
    const NodeAssessment* a = pending.empty() ? nullptr : rollout.pass.index.find(pending.begin()->second);
    return a != nullptr && a->label && !a->label->empty();
  });
}

GateState closed_by_canary(RolloutView& rollout) {
  std::string why = drifting_canary(rollout);
  return why.empty() ? GateState() : GateState{Gate::canary_drifting, std::move(why)};
}

GateState closed_by_mechanism(RolloutView& rollout) {
  if (rollout.policy.rollout.mechanism != Mechanism::daemonset_restart) return {};
  std::string why = restart_obstacle(rollout);
  return why.empty() ? GateState() : GateState{Gate::mechanism_unusable, std::move(why)};
}

GateState closed_by_propagation(RolloutView& rollout) {
  const std::string& key = rollout.key.key;
  if (!relabels(rollout) || key_is_projected(rollout.pass, rollout.installation, key)) return {};
  return {Gate::key_not_projected,
          fmt::format("key {} of ConfigMap {} is new or was edited, or the operator has not watched it for {} yet: "
                      "kubelets must project its text first",
                      key, rollout.installation.id(), k8s::format_go_duration(rollout.pass.s.settings.projection))};
}

GateState closed_until_settled(RolloutView& rollout) {
  // Other objects might be deleted next, and then their kind: the last specs govern until that is known.
  if (rollout.policy.gone && !has_recorded_stop(*rollout.pass.index.record, rollout.policy)) {
    return {Gate::settling, fmt::format("SharingPolicy {} was deleted: its nodes follow the next policy within {}",
                                        rollout.key.policy, k8s::format_go_duration(kDeletionGrace))};
  }
  // Pods that a DaemonSet's controller creates in the same second as the edit cannot be distinguished from older ones.
  const bool by_daemonset = rollout.policy.rollout.mechanism == Mechanism::daemonset_restart;
  const Duration settle =
      std::max<Duration>(rollout.pass.s.settings.settle, std::chrono::seconds(by_daemonset ? 1 : 0));
  if (rollout.pass.ages.has_run_for(settled_timer(rollout.pass, rollout.profile_rollout.installation), settle))
    return {};
  return {Gate::settling, fmt::format("ConfigMap {} or its DaemonSets changed less than {} ago",
                                      rollout.installation.id(), k8s::format_go_duration(settle))};
}

GateState closed_by_earlier_attempt(RolloutView& rollout) {
  if (!rollout.anew) return {};
  return {Gate::new_attempt, "the SharingRollout of an earlier attempt is replaced first"};
}

// --- The table of gate.h.

struct GateRow {
  GateState (*closed)(RolloutView&);
  bool holds_repairs;
  bool backs_out;
};

constexpr GateRow kGates[] = {
    {closed_by_mode, true, true},
    {closed_by_pause_above, true, true},
    {closed_by_selector, true, true},
    {closed_by_abort, true, true},
    {closed_by_undo, true, true},
    {closed_by_own_pause, true, true},
    {closed_without_approval, false, true},
    {closed_by_announcement, true, false},
    {closed_by_failures, true, true},
    {closed_by_canary, true, false},
    {closed_by_mechanism, true, false},
    {closed_by_propagation, true, false},
    {closed_by_window, true, true},
    {closed_until_settled, true, false},
    {closed_by_earlier_attempt, true, false},
};

bool applies(const GateRow& row, GateUse use) {
  switch (use) {
    case GateUse::start:
      return true;
    case GateUse::repair:
      return row.holds_repairs;
    case GateUse::wait:
      return row.backs_out;
  }
  return true;
}

}  // namespace

GateState closed_by_abort(RolloutView& rollout) {
  if (!switches_on(rollout).aborted) return {};
  return {Gate::aborted,
          fmt::format("the rollout was aborted; the remaining nodes are not changed. Retry: `gpu-sharing-operator "
                      "rollout start {}`",
                      rollout.policy.meta.name)};
}

GateState first_closed_gate(RolloutView& rollout, GateUse use) {
  for (const GateRow& row : kGates) {
    if (!applies(row, use)) continue;
    if (GateState closed = row.closed(rollout); !closed.is_open()) return closed;
  }
  return {};
}

std::string pause_of_rollout(RolloutView& rollout) {
  if (GateState paused = closed_by_pause_above(rollout); !paused.is_open()) return std::move(paused.message);
  return closed_by_own_pause(rollout).message;
}

}  // namespace gso
