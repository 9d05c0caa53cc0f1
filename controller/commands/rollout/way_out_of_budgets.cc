#include "controller/commands/rollout/way_out.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <ranges>
#include <set>
#include <string_view>
#include <utility>

#include "reconcilers/explain/commands.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/rollout/budgets.h"
#include "reconcilers/status/status.h"

namespace gso {
namespace {

using Names = std::vector<std::string>;

// Raises the budgets that have no slot left, for whoever decides that. One line for all of them, because raising one of
// several alone changes nothing.
Names raise_budgets(const ReadingPass& pass, std::string_view message, std::string_view policy) {
  const ReportedBudgets full = reported_budgets(message);
  Names fields;
  Names values;
  const auto add = [&](std::string_view field, std::string_view value) {
    fields.push_back(fmt::format("spec.rollout.{}", field));
    values.push_back(fmt::format("config.{}", value));
  };
  if (full.policy) add("maxUnavailable", "max-unavailable");
  if (full.group) add("maxUnavailablePerGroup", "max-unavailable-per-group");
  constexpr std::string_view kOfCluster = "config.cluster-max-unavailable";
  if (fields.empty())
    return full.cluster
               ? Names{upgrade_chart_command(pass.world(), pass.settings(), fmt::format("and a higher {}", kOfCluster))
                           .text()}
               : Names();
  std::string out =
      fmt::format("kubectl edit sharingpolicies.gpusharing.dev {}  # to raise {}", policy, fmt::join(fields, " and "));
  // The operator reads those values when it creates that policy, and never again.
  if (policy == kDefaultPolicy)
    out += fmt::format("; the chart value{} {} {} for a new cluster only", values.size() == 1 ? "" : "s",
                       fmt::join(values, " and "), values.size() == 1 ? "is" : "are");
  if (full.cluster) out += fmt::format("; raise the chart value {} with helm upgrade as well", kOfCluster);
  if (fields.size() + (full.cluster ? 1 : 0) > 1) out += ": all of these budgets are full, and one alone frees no slot";
  return {std::move(out)};
}

// The nodes that hold the slots of the full budgets that the rollout waits for; empty also if its status says that it
// waits for something else.
Names holders_for(const ReadingPass& pass, const RolloutFacts& facts) {
  const SharingRollout& rollout = *facts.rollout;
  ReportedBudgets full = reported_budgets(facts.message);
  if (facts.reason != kBudgetExhausted && !full.is_any) return {};
  // No plan knows who holds the slots that the template of a DaemonSet waits for.
  if (!daemonset_of(rollout.config_map).empty()) return std::move(full.holders);
  const std::set<std::string> names = pass.holders_awaited_by(rollout_key_of(rollout));
  return {names.begin(), names.end()};
}

// The nodes that hold the slots that any rollout of the policy waits for.
Names holders_for(const ReadingPass& pass, std::string_view policy) {
  std::set<std::string> names;
  for (const auto& [key, rollout] : pass.index().profile_rollouts) {
    if (key.policy == policy) names.merge(pass.holders_awaited_by(key));
  }
  return {names.begin(), names.end()};
}

// "kubectl get nodes a01 a02  # COMMENT; and 3 more": the first few nodes.
std::string command_for_first(std::string_view command, const Names& nodes, std::string_view comment) {
  const std::size_t shown = std::min(nodes.size(), kMostNames);
  const std::string more = shown < nodes.size() ? fmt::format("; and {} more", nodes.size() - shown) : std::string();
  return fmt::format("{} {}  # {}{}", command, fmt::join(nodes | std::views::take(shown), " "), comment, more);
}

// For whoever keeps holders of the slots out of service. Nothing about a node that the operator changes: its slot is
// free when its change ends.
Names of_holders_out_of_service(const ReadingPass& pass, const Names& holders) {
  std::map<SlotHold, Names> by_hold;
  for (const std::string& name : holders) by_hold[slot_hold(pass.world(), pass.index(), name)].push_back(name);
  Names out;
  const Names& cordoned = by_hold[SlotHold::cordoned];
  if (!cordoned.empty()) {
    out.push_back(command_for_first("kubectl get nodes", cordoned,
                                    fmt::format("cordoned by somebody: whoever did can return {} with kubectl uncordon",
                                                cordoned.size() == 1 ? "it" : "them")));
  }
  const Names& not_ready = by_hold[SlotHold::not_ready];
  if (!not_ready.empty()) {
    out.push_back(command_for_first("kubectl describe nodes", not_ready,
                                    not_ready.size() == 1 ? "NotReady: it holds a slot until it is Ready"
                                                          : "NotReady: they hold slots until they are Ready"));
  }
  for (const SlotHold hold : {SlotHold::unreadable, SlotHold::cordoned_by_operator, SlotHold::no_gpus}) {
    for (const std::string& name : by_hold[hold] | std::views::take(kMostNames))
      out.push_back(fmt::format("gpu-sharing-operator explain {}  # it holds a slot: {}", name, describe(hold)));
  }
  return out;
}

FullBudgets of_exhausted_budgets(const ReadingPass& pass, const Names& holders, std::string_view message,
                                 std::string_view policy) {
  const auto changes = [&](const std::string& name) {
    return slot_hold(pass.world(), pass.index(), name) == SlotHold::in_change;
  };
  // All are in a change: the rollout continues by itself.
  if (!holders.empty() && std::ranges::all_of(holders, changes)) return {};
  return {of_holders_out_of_service(pass, holders), raise_budgets(pass, message, policy)};
}

// The policies of other rollouts whose nodes hold the slots.
Names of_other_holders(const ReadingPass& pass, const Names& holders, std::string_view policy) {
  std::map<std::string, Names> by_policy;
  for (const std::string& name : holders) {
    const NodeAssessment* a = pass.index().find(name);
    const SlotHold hold = slot_hold(pass.world(), pass.index(), name);
    const bool by_rollout = hold == SlotHold::in_change || hold == SlotHold::failed || hold == SlotHold::none;
    if (a != nullptr && by_rollout && !a->policy.empty() && a->policy != policy)
      by_policy[std::string(a->policy.view())].push_back(name);
  }
  Names out;
  for (const auto& [other, nodes] : by_policy) {
    out.push_back(fmt::format("gpu-sharing-operator rollout status policy/{}  # {} {} the slots", other,
                              first_names(nodes), nodes.size() == 1 ? "holds" : "hold"));
  }
  return out;
}

}  // namespace

FullBudgets way_out_of_full_budgets(const ReadingPass& pass, const RolloutFacts& facts,
                                    const std::vector<NodeStep>& steps) {
  const std::string& policy = facts.rollout->policy;
  const Names holders = holders_for(pass, facts);
  if (facts.reason == kBudgetExhausted) return of_exhausted_budgets(pass, holders, facts.message, policy);
  const auto makes_progress = [](const NodeStep& step) { return step.phase != Phase::draining && step.ready; };
  if (std::ranges::any_of(steps, makes_progress)) return {};
  FullBudgets out{of_holders_out_of_service(pass, holders), {}};
  std::ranges::move(of_other_holders(pass, holders, policy), std::back_inserter(out.holders));
  if (!steps.empty() || !out.holders.empty()) out.raises = raise_budgets(pass, facts.message, policy);
  return out;
}

FullBudgets way_out_of_full_budgets(const ReadingPass& pass, const PolicyWait& wait) {
  return of_exhausted_budgets(pass, holders_for(pass, wait.policy), wait.message, wait.policy);
}

}  // namespace gso
