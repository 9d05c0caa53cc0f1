#include "reconcilers/explain/stop_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/cluster/record_store.h"
#include "reconcilers/explain/chart_command.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/rollout/stops.h"

namespace gso {

bool policy_is_gone(const World& world, const FleetIndex::Impl& index, std::string_view policy) {
  // A policy that could not be read is not gone.
  if (sharing_objects_unread(world)) return false;
  return world.policies.find(policy) == nullptr && index.held_policies.contains(std::string(policy));
}

std::string spec_command(const World& world, std::string_view reason, const SharingPolicy& policy,
                         const PlannerSettings& settings) {
  if (reason == reason_of(Gate::outside_window)) {
    return fmt::format(
        "kubectl edit sharingpolicies.gpusharing.dev {}  # spec.rollout.maintenanceWindows, to start nodes sooner; "
        "otherwise wait",
        policy.meta.name);
  }
  if (reason != reason_of(Gate::observe)) return {};
  // Approve comes first: Enforce is a decision about every later edit as well.
  const std::string approve = fmt::format("gpu-sharing-operator rollout approve policy/{}", policy.meta.name);
  // The operator's own mode is the stricter one. These settings need not have it: it records nothing then.
  if (policy.mode != PolicyMode::observe) {
    return upgrade_chart_command(
        world, settings,
        fmt::format(
            "--set modes.rollouts=Approve (without the chart: start the operator with --max-mode Approve); each "
            "change then waits for `{}`; Enforce starts the present change, and later edits under policies in "
            "mode Enforce, without asking: look at `gpu-sharing-operator diff` first",
            approve));
  }
  return fmt::format(
      "kubectl patch sharingpolicies {} --type merge --patch '{{\"spec\":{{\"mode\":\"Approve\"}}}}'  # after a look "
      "at `gpu-sharing-operator diff`; each change then waits for `{}`; mode Enforce instead starts this change and "
      "every later edit without asking",
      policy.meta.name, approve);
}

namespace {

// Whom the nodes of the deleted policies follow once their stops are forgotten: "; n01, n02 then follow policy default
// (mode Enforce)".
std::string followers_text(const World& world, const FleetIndex::Impl& index, const PlannerSettings& settings) {
  static const std::map<std::string, SharingPolicy> kNoneHeld;
  const std::vector<const SharingPolicy*> others = policies_in_order(world, index.built_in_policy, kNoneHeld);
  std::map<std::string, std::vector<std::string>> followers;  // By what is said of the policy.
  for (const auto& [name, indexed] : index.nodes) {
    const Node* node = indexed.assessment ? world.nodes.find(name) : nullptr;
    const auto held = node == nullptr ? index.held_policies.end()
                                      : index.held_policies.find(std::string(indexed.assessment->policy.view()));
    const bool is_freed =
        held != index.held_policies.end() && index.record && has_recorded_stop(*index.record, held->second);
    const SharingPolicy* next = is_freed ? governing_policy(others, *node) : nullptr;
    if (next == nullptr) continue;
    followers[fmt::format("policy {} (mode {}{})", next->meta.name, word_of(kPolicyModeWords, settings.mode_of(*next)),
                          next->rollout.paused ? ", paused" : "")]
        .push_back(name);
  }
  std::string out;
  for (auto& [policy, nodes] : followers) {
    std::ranges::sort(nodes);
    out += fmt::format("; {} then follow{} {}", first_names(nodes), nodes.size() == 1 ? "s" : "", policy);
    if (policy.ends_with("(mode Enforce)")) out += ", which starts pending changes there without asking";
  }
  return out;
}

}  // namespace

bool outlasts_retry(Gate gate) {
  return gate == Gate::observe || gate == Gate::paused || gate == Gate::approval || gate == Gate::outside_window;
}

std::string gone_policy_command(const World& world, const FleetIndex::Impl& index, const PlannerSettings& settings,
                                std::string_view policy) {
  if (!world.policies_served) return std::string(kInstallCrds);
  return fmt::format(
      "{}  # ends the stops of all deleted policies{}; to end this one alone, create SharingPolicy {} again",
      forget_policies_command(settings), followers_text(world, index, settings), policy);
}

std::string resume_command(const RolloutView& rollout) {
  const World& world = rollout.pass.s.world;
  const std::string resume = "gpu-sharing-operator rollout resume";
  switch (pause_of_rollout(rollout).by) {
    case PausedBy::nobody:
      return {};
    case PausedBy::config_map:
      return world.policies_served ? resume : end_pause_command(rollout.installation.config_map_key());
    case PausedBy::policy:
    case PausedBy::rollout:
      break;
  }
  if (policy_is_gone(world, rollout.pass.index, rollout.key.policy) && world.policies_served)
    return forget_policies_command(rollout.pass.s.settings);
  if (pause_of_rollout(rollout).by == PausedBy::policy) return fmt::format("{} policy/{}", resume, rollout.key.policy);
  if (rollout.object != nullptr) return fmt::format("{} {}", resume, rollout.object->meta.name);
  return fmt::format("{} {}  # once an operator has created it again", resume,
                     rollout_name(rollout.key, rollout.target));
}

std::string start_command(std::string_view policy, std::string_view resume) {
  const std::string start = fmt::format("gpu-sharing-operator rollout start {}", policy);
  return resume.empty() ? start : fmt::format("{}  # then, because it is paused as well: {}", start, resume);
}

GateState ended_by(const RolloutView& rollout) {
  GateState aborted = closed_by_abort(rollout);
  if (!aborted.is_open()) return aborted;
  return is_stopped(rollout.gate().gate) ? rollout.gate() : GateState();
}

std::string stop_command(const RolloutView& rollout) {
  const std::string command = "gpu-sharing-operator rollout";
  const GateState ended = ended_by(rollout);
  const GateState& gate = ended.is_open() ? rollout.gate() : ended;
  const PlannerSettings& settings = rollout.pass.s.settings;
  const World& world = rollout.pass.s.world;
  const bool gone = policy_is_gone(world, rollout.pass.index, rollout.key.policy);
  const bool by_person = row_of(gate.gate).stops_all && gate.gate != Gate::max_failures;
  if (gone && (by_person || gate.gate == Gate::outside_window))
    return gone_policy_command(world, rollout.pass.index, settings, rollout.key.policy);
  switch (gate.gate) {
    case Gate::observe:
    case Gate::outside_window:
      return spec_command(world, gate.reason(), rollout.policy, settings);
    case Gate::paused:
      return resume_command(rollout);
    case Gate::approval:
      return fmt::format("{} approve policy/{}", command, rollout.key.policy);
    case Gate::aborted:
    case Gate::undone:
      return start_command(rollout.key.policy, resume_command(rollout));
    default:
      return {};
  }
}

}  // namespace gso
