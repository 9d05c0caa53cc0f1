#include "controller/commands/rollout/way_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "reconcilers/explain/node.h"
#include "reconcilers/explain/remedy.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/rollout/gates.h"

namespace gso {
namespace {

// Ends the stop, for whoever decides that.
std::vector<std::string> of_the_stop(const World& world, const RolloutFacts& facts) {
  const SharingRollout& rollout = *facts.rollout;
  const std::string command = "gpu-sharing-operator rollout";
  if (facts.phase == "AwaitingApproval")
    return {"gpu-sharing-operator diff", fmt::format("{} approve {}", command, rollout.meta.name)};
  if (facts.reason == reason_of(Gate::aborted) || facts.undone())
    return {fmt::format("{} start {}", command, rollout.policy)};
  if (facts.reason != reason_of(Gate::paused)) return {};
  const SharingPolicy* policy = world.policies.find(rollout.policy);
  if (policy != nullptr && policy->rollout.paused) return {fmt::format("{} resume policy/{}", command, rollout.policy)};
  return {rollout.paused ? fmt::format("{} resume {}", command, rollout.meta.name) : command + " resume"};
}

// Raises each budget that has no slot left, for whoever decides that: the operator's message names the setting in
// parentheses (rollout/budgets.h). Raising one of them alone changes nothing. Not while a node that holds a slot makes
// progress: a wave that uses its budget is no trouble.
std::vector<std::string> of_full_budgets(const RolloutFacts& facts, const std::vector<NodeStep>& steps) {
  std::vector<std::string> out;
  const bool all_wait =
      !steps.empty() && std::ranges::all_of(steps, [](const NodeStep& step) { return step.phase == Phase::draining; });
  if (facts.reason != kBudgetExhausted && !all_wait) return out;
  for (const std::string_view setting : {"maxUnavailable", "maxUnavailablePerGroup"}) {
    if (!facts.message.contains(fmt::format("({})", setting))) continue;
    out.push_back(
        fmt::format("to raise spec.rollout.{}: kubectl edit sharingpolicies {}", setting, facts.rollout->policy));
  }
  if (facts.message.contains("(--cluster-max-unavailable)")) {
    out.emplace_back(
        "to raise cluster-max-unavailable: helm upgrade RELEASE CHART --namespace NAMESPACE --reset-then-reuse-values "
        "--set config.cluster-max-unavailable=VALUE");
  }
  return out;
}

void add_command(std::vector<std::string>& out, std::string command) {
  constexpr std::size_t kMost = 6;
  if (out.size() < kMost && std::ranges::find(out, command) == out.end()) out.push_back(std::move(command));
}

}  // namespace

std::vector<std::string> way_out(ReadingPass& pass, const RolloutFacts& facts, const std::vector<NodeStep>& steps) {
  const World& world = pass.world();
  const FleetIndex::Impl& index = pass.index();
  std::vector<std::string> out = of_the_stop(world, facts);
  const auto look_at = [&](const std::string& name, std::string_view reason) {
    const Node* node = world.nodes.find(name);
    const NodeAssessment* a = index.find(name);
    if (node == nullptr || a == nullptr) return;
    std::string command = trouble_command(index, *node, *a);
    if (command.empty()) command = command_of_reason(world, index, *node, *a, reason);
    if (command.empty() && a->phase == Phase::failed)
      command = next_step(world, index, *node, a, shown_state(pass, *node).state);
    if (!command.empty()) add_command(out, fmt::format("{}: {}", name, command));
  };
  for (std::string& command : of_full_budgets(facts, steps)) add_command(out, std::move(command));
  for (const RolloutFacts::NodeRow& row : facts.nodes) look_at(row.name, row.reason);
  for (const NodeStep& step : steps) {
    const bool listed = std::ranges::find(facts.nodes, step.node, &RolloutFacts::NodeRow::name) != facts.nodes.end();
    if (!listed) look_at(step.node, {});
  }
  return out;
}

}  // namespace gso
