#include "reconcilers/rollout/gates.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/plan_draft.h"
#include "reconcilers/model/rollout_spec.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/canary.h"
#include "reconcilers/rollout/managed_keys.h"

namespace gso {

namespace {

// How long the DaemonSets can differ from their ClusterPolicy before the operator stops treating that as an update by
// the GPU Operator.
constexpr Duration kDifferencePatience = std::chrono::minutes(2);

}  // namespace

TimerKey settled_timer(const Pass& pass, std::size_t installation) {
  return {Timer::settled, pass.index.discovery.installations[installation].id(), pass.index.signatures[installation]};
}

TimerKey unsettled_timer(const RolloutKey& key) {
  return {Timer::unsettled, key.config_map, fmt::format("{}/{}", key.policy, key.key)};
}

TimerKey differing_timer(const PluginInstallation& installation) {
  std::string state = fmt::format("{}|{}|{}", installation.clusterpolicy_generation, installation.announced_config_map,
                                  installation.announced_default);
  for (const Operand& operand : installation.operands) state += fmt::format("|{}:{}", operand.uid, operand.generation);
  return {Timer::differing, installation.id(), short_hash(state)};
}

std::string lasting_difference(Pass& pass, const PluginInstallation& installation) {
  if (!installation.announced || !pass.ages.has_run_for(differing_timer(installation), kDifferencePatience)) return {};
  std::vector<std::string> different;
  for (const Operand& operand : installation.operands) {
    if (operand.config_map != installation.announced_config_map ||
        operand.default_key != installation.announced_default) {
      different.push_back(fmt::format("DaemonSet {} has config {} default {}", k8s::to_string(operand.key),
                                      or_none(operand.config_map), or_none(operand.default_key)));
    }
  }
  return fmt::format(
      "{}, but ClusterPolicy {} has {}, for longer than {}: someone edited the DaemonSets by hand, "
      "or the GPU Operator does not run. The GPU Operator overwrites such edits only when it has another change to "
      "write. No node starts until both agree: set spec.devicePlugin.config of the ClusterPolicy to the intended "
      "values",
      first_names(different), installation.owner, installation.announced_config(),
      k8s::format_go_duration(kDifferencePatience));
}

namespace {

// In the order of Gate.
constexpr GateRow kGates[] = {
    // gate, reason, phase of the SharingRollout, holds repairs, backs out, stops all, needs attention, audited
    {Gate::open, "", "", false, false, false, false, false},
    {Gate::observe, kObserve, "Paused", true, true, true, false, true},
    {Gate::paused, "Paused", "Paused", true, true, true, true, true},
    {Gate::aborted, "Aborted", "Failed", true, true, true, true, true},
    {Gate::undone, kUndone, "Paused", true, true, true, true, true},
    {Gate::approval, "AwaitingApproval", "AwaitingApproval", false, true, true, true, false},
    {Gate::view_stale, kViewStale, "", true, false, false, false, false},
    {Gate::gpu_operator_updating, kGpuOperatorUpdating, "", true, false, false, false, false},
    {Gate::max_failures, kMaxFailures, "Paused", true, true, true, true, true},
    {Gate::canary_drifting, kCanaryDrifting, "", true, false, false, false, false},
    {Gate::mechanism_unusable, "MechanismUnusable", "", true, false, false, true, true},
    {Gate::key_not_projected, "KeyNotProjected", "", true, false, false, false, false},
    {Gate::outside_window, kOutsideWindow, "", true, true, false, true, false},
    {Gate::settling, "Settling", "", true, false, false, false, false},
    {Gate::new_attempt, "NewAttempt", "", true, false, false, false, false},
};
constexpr bool is_in_order(const auto& rows) {
  for (std::size_t i = 0; i < std::size(rows); ++i)
    if (static_cast<std::size_t>(rows[i].gate) != i) return false;
  return true;
}
static_assert(is_in_order(kGates) && std::size(kGates) == static_cast<std::size_t>(Gate::new_attempt) + 1);

}  // namespace

const GateRow& row_of(Gate gate) {
  return kGates[static_cast<std::size_t>(gate)];
}

std::string GateState::reason() const {
  return std::string(reason_of(gate));
}

Reason GateState::why() const {
  return {reason_of(gate), message};
}

namespace {

// --- Why a gate is closed. First the switches that people have set.

// Of the policy and of the ConfigMap.
Pause pause_above(const GateSubject& subject) {
  std::string of_policy = subject.policy.rollout.paused ? "spec.rollout.paused of the policy is set" : "";
  if (subject.profile == nullptr) return of_policy.empty() ? Pause() : Pause{PausedBy::policy, std::move(of_policy)};
  const Pass& pass = subject.pass;
  const ObjectKey config_map = subject.profile->installation.config_map_key();
  const ConfigMapPause pause = pause_of(pass.s.world, pass.index.record_or_null(), config_map);
  if (!of_policy.empty()) {
    // Who resumes the policy must know that this alone starts no node.
    if (pause != ConfigMapPause::none) of_policy += ", and " + describe(pause, config_map);
    return {PausedBy::policy, std::move(of_policy)};
  }
  if (pause == ConfigMapPause::none) return {};
  return {PausedBy::config_map, describe(pause, config_map)};
}

std::string closed_by_mode(const GateSubject& subject) {
  const PolicyMode mode = subject.pass.s.settings.mode_of(subject.policy);
  if (mode != PolicyMode::observe) return {};
  return subject.policy.mode != mode ? "the operator runs with max-mode Observe: nothing is changed"
                                     : "the policy's mode is Observe: nothing is changed";
}

std::string closed_by_person(const GateSubject& subject) {
  if (!subject.switches.aborted) return {};
  return fmt::format(
      "the rollout was aborted; the remaining nodes are not changed. Retry: `gpu-sharing-operator rollout start {}`",
      subject.policy.meta.name);
}

std::string closed_by_undo(const GateSubject& subject) {
  if (!subject.switches.undone) return {};
  return fmt::format("rolled back by a person. Retry: `gpu-sharing-operator rollout start {}`",
                     subject.policy.meta.name);
}

std::string closed_by_own_pause(const GateSubject& subject) {
  return subject.switches.paused ? "spec.paused of the rollout is set" : "";
}

std::string closed_without_approval(const GateSubject& subject) {
  if (subject.pass.s.settings.mode_of(subject.policy) != PolicyMode::approve) return {};
  // The policy's own profile was rolled back, and this rollout restores its nodes. The person who approved the change
  // does not need to approve its rollback.
  const RolloutView* rollout = subject.profile;
  const bool goes_back = rollout != nullptr && !owns_key(rollout->policy, rollout->key) &&
                         taken_back(rollout->pass.index, rollout->policy, rollout->key.config_map) != nullptr;
  return subject.switches.approved || goes_back ? std::string() : subject.approval();
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
  // On one line, in quotes: YAML and JSON read it as the value of the key.
  const std::string quoted = nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.empty() || quoted.size() > kMost) {
    return fmt::format("; the operator does not manage ConfigMap {}: restore revision {} in it", key.config_map,
                       verified);
  }
  return fmt::format("; the operator does not manage ConfigMap {}: restore the last verified text in it: {}",
                     key.config_map, quoted);
}

// --- What the operator does not know now.

std::string closed_by_stale_view(const RolloutView& rollout) {
  const StaleView* stale = stale_view_of(rollout.pass.s, rollout.installation.ns);
  return stale == nullptr ? std::string() : describe(*stale);
}

// --- Time, and changes that other controllers are about to make.

std::string closed_by_window(const GateSubject& subject) {
  Pass& pass = subject.pass;
  const WindowState windows = windows_at(subject.policy.rollout.windows, pass.s.now);
  if (windows.until) pass.look_again_in(*windows.until - pass.s.now);
  if (windows.open) return {};
  if (windows.until) return "the next maintenance window opens at " + k8s::format_time(*windows.until);
  if (windows.problem.empty()) return "no maintenance window opens in the next five years";
  return "a maintenance window cannot be read: " + windows.problem;
}

std::string closed_by_announcement(const RolloutView& rollout) {
  const PluginInstallation& installation = rollout.installation;
  if (!installation.announced) return {};
  if (std::string stays = lasting_difference(rollout.pass, installation); !stays.empty()) return stays;
  return fmt::format("ClusterPolicy {} announces {}, which its DaemonSets do not have yet", installation.owner,
                     installation.announced_config());
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

std::string closed_by_propagation(const RolloutView& rollout) {
  const std::string& key = rollout.key.key;
  if (!relabels(rollout) || key_is_projected(rollout.pass, rollout.installation, key)) return {};
  return fmt::format(
      "key {} of ConfigMap {} is new or was edited, or the operator has not watched it for {} yet: kubelets must "
      "project its text first",
      key, rollout.installation.id(), k8s::format_go_duration(rollout.pass.s.settings.projection));
}

// Other objects might be deleted next, and then their kind: the last specs govern until that is known.
bool waits_out_deletion(const RolloutView& rollout) {
  return rollout.policy.gone && !has_recorded_stop(*rollout.pass.index.record, rollout.policy);
}

std::string closed_until_settled(const RolloutView& rollout) {
  if (waits_out_deletion(rollout)) {
    return fmt::format("SharingPolicy {} was deleted: its nodes follow the next policy within {}", rollout.key.policy,
                       k8s::format_go_duration(kDeletionGrace));
  }
  const Duration settle = settle_time(rollout);
  if (rollout.pass.ages.has_run_for(settled_timer(rollout.pass, rollout.profile_rollout.installation), settle))
    return {};
  return fmt::format("ConfigMap {} or its DaemonSets changed, or the operator started, less than {} ago",
                     rollout.installation.id(), k8s::format_go_duration(settle));
}

GateSubject subject_of(const RolloutView& rollout) {
  const bool has_object = rollout.object != nullptr && !rollout.anew;
  return {rollout.pass,
          rollout.policy,
          rollout.anew ? Switches() : switches_of(rollout.pass, rollout.key, rollout.target, rollout.object),
          rollout.anew,
          [=] { return fmt::format("waits for spec.approved{}", has_object ? "" : " of its SharingRollout"); },
          [&rollout] { return closed_until_settled(rollout); },
          &rollout};
}

// A retry ends the stop, and starts nothing outside a maintenance window.
std::string closed_by_failures(const RolloutView& rollout) {
  const std::string& why = rollout.too_many_failures();
  if (why.empty()) return {};
  const std::string window = closed_by_window(subject_of(rollout));
  return why + last_verified_text(rollout) + (window.empty() ? "" : "; a retry also waits: " + window);
}

// --- All conditions, in the order in which they are checked: the first one that applies is reported. Each says for
// people why the gate is closed; empty: it is open.

struct Condition {
  Gate gate;
  std::string (*why)(const GateSubject&);                   // Null: it applies to profiles only.
  std::string (*of_profile)(const RolloutView&) = nullptr;  // Then this one.
};

constexpr Condition kConditions[] = {
    {Gate::observe, closed_by_mode},
    {Gate::paused, [](const GateSubject& subject) { return pause_above(subject).why; }},
    // It governs its nodes only because of its stop. An approved change, or one in a window, could remove them from it.
    {Gate::paused, [](const GateSubject& subject) { return selector_problem(subject.policy); }},
    {Gate::aborted, closed_by_person},
    {Gate::undone, closed_by_undo},
    {Gate::paused, closed_by_own_pause},
    {Gate::approval, closed_without_approval},
    {Gate::view_stale, nullptr, closed_by_stale_view},
    {Gate::gpu_operator_updating, nullptr, closed_by_announcement},
    {Gate::max_failures, nullptr, closed_by_failures},
    {Gate::canary_drifting, nullptr, drifting_canary},
    {Gate::mechanism_unusable, nullptr, restart_obstacle},
    {Gate::key_not_projected, nullptr, closed_by_propagation},
    {Gate::outside_window, closed_by_window},
    {Gate::settling, [](const GateSubject& subject) { return subject.settling(); }},
    {Gate::new_attempt,
     [](const GateSubject& subject) {
       return std::string(subject.anew ? "the SharingRollout of an earlier attempt is replaced first" : "");
     }},
};

bool closes(const SharingPolicy& policy, Gate gate) {
  if (gate == Gate::observe) return policy.mode == PolicyMode::observe;
  if (gate == Gate::paused) return policy.rollout.paused;
  if (gate == Gate::approval) return policy.mode == PolicyMode::approve;
  return gate == Gate::outside_window && !policy.rollout.windows.empty();
}

// What a caller wants to do. GateRow says which gates prevent it.
enum class GateUse : std::uint8_t {
  start,            // A change of the next node.
  repair,           // A restart of a node that stopped showing the revision that it has loaded.
  wait,             // A node that only waits in its change: it is uncordoned and queued again.
  wait_for_repair,  // The same of a node in such a restart: only by a gate that holds repairs.
};

bool prevents(const GateRow& gate, GateUse use) {
  const bool of_wait = use == GateUse::wait || use == GateUse::wait_for_repair;
  const bool of_repair = use == GateUse::repair || use == GateUse::wait_for_repair;
  return (!of_wait || gate.backs_out) && (!of_repair || gate.holds_repairs);
}

GateState first_closed(const GateSubject& subject, GateUse use) {
  for (const Condition& condition : kConditions) {
    const bool applies = condition.why != nullptr || subject.profile != nullptr;
    if (!applies || !prevents(row_of(condition.gate), use)) continue;
    std::string why = condition.why != nullptr ? condition.why(subject) : condition.of_profile(*subject.profile);
    if (!why.empty()) return {condition.gate, std::move(why)};
  }
  return {};
}

std::optional<Reason> why_closed(const RolloutView& rollout, GateUse use) {
  const GateState closed = first_closed(subject_of(rollout), use);
  return closed.is_open() ? std::nullopt : std::optional(closed.why());
}

GateState closed_by_abort(const GateSubject& subject) {
  std::string why = closed_by_person(subject);
  return why.empty() ? GateState() : GateState{Gate::aborted, std::move(why)};
}

}  // namespace

GateState closed_by_abort(const RolloutView& rollout) {
  return closed_by_abort(subject_of(rollout));
}

GateState first_closed_gate(const GateSubject& of_template) {
  GateState aborted = closed_by_abort(of_template);
  return aborted.is_open() ? first_closed(of_template, GateUse::start) : aborted;
}

// Pods that a DaemonSet's controller creates in the same second as the edit cannot be distinguished from older ones.
Duration settle_time(const RolloutView& rollout) {
  const bool by_daemonset = rollout.policy.rollout.mechanism == Mechanism::daemonset_restart;
  return std::max<Duration>(rollout.pass.s.settings.settle, std::chrono::seconds(by_daemonset ? 1 : 0));
}

std::optional<WallTime> settled_at(const RolloutView& rollout) {
  if (rollout.gate().gate != Gate::settling || waits_out_deletion(rollout)) return std::nullopt;
  return rollout.pass.ages.since(settled_timer(rollout.pass, rollout.profile_rollout.installation)) +
         std::chrono::ceil<std::chrono::milliseconds>(settle_time(rollout));
}

Gate first_gate_in_spec(const SharingPolicy& policy) {
  const auto* first =
      std::ranges::find_if(kConditions, [&](const Condition& condition) { return closes(policy, condition.gate); });
  return first == std::end(kConditions) ? Gate::open : first->gate;
}

Pause pause_of_rollout(const RolloutView& rollout) {
  const GateSubject subject = subject_of(rollout);
  if (Pause above = pause_above(subject); above.by != PausedBy::nobody) return above;
  std::string own = closed_by_own_pause(subject);
  return own.empty() ? Pause() : Pause{PausedBy::rollout, std::move(own)};
}

GateState first_closed_gate(const RolloutView& rollout) {
  return first_closed(subject_of(rollout), GateUse::start);
}

bool lets_repairs_start(const RolloutView& rollout) {
  return first_closed(subject_of(rollout), GateUse::repair).is_open();
}

std::optional<Reason> stop_of_waiting(const RolloutView& rollout) {
  return why_closed(rollout, GateUse::wait);
}

std::optional<Reason> stop_of_waiting_repairs(const RolloutView& rollout) {
  return why_closed(rollout, GateUse::wait_for_repair);
}

bool opens_shortly(const RolloutView& rollout) {
  const Pass& pass = rollout.pass;
  const Gate closed = rollout.gate().gate;
  if (closed == Gate::settling) {
    const Duration patience = std::max<Duration>(3 * pass.s.settings.settle, std::chrono::seconds(30));
    return !rollout.pass.ages.has_run_for(unsettled_timer(rollout.key), patience);
  }
  if (closed == Gate::view_stale) return !stale_view_of(pass.s, rollout.installation.ns)->reported;
  return closed == Gate::new_attempt;
}

}  // namespace gso
