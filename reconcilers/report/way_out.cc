// What to type next about a rollout or a wait.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <ranges>
#include <utility>

#include "reconcilers/explain/commands.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/explain/revisions.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/report/report.h"
#include "reconcilers/rollout/budgets.h"
#include "reconcilers/rollout/canary.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/status/status.h"

namespace gso {
namespace {

// The most commands about nodes that are printed together.
constexpr std::size_t kMostOfNodes = 6;

using Names = std::vector<std::string>;
using Commands = std::vector<Command>;

// Corrects the invalid profile of the policy's nodes where it is chosen; `audit` names what is known only to a status.
Command correct_profile_command(const ReadingPass& pass, std::string_view policy) {
  for (const auto& [key, rollout] : pass.index().profile_rollouts) {
    const auto invalid = rollout.blocked.find(std::string(kConfigInvalid));
    if (key.policy != policy || invalid == rollout.blocked.end()) continue;
    for (const std::string& name : invalid->second) {
      const Node* node = pass.world().nodes.find(name);
      if (node != nullptr && node->ready) return next_step(pass, *node, pass.index().find(name), {});
    }
  }
  return {"gpu-sharing-operator audit"};
}

// What a resume continues to must not be a surprise, nor that the pause is of this rollout alone.
Command with_revision(const SharingRollout& rollout, Command resume) {
  if (resume == resume_command(rollout.meta.name))
    resume.comment = fmt::format("continues to {}; the pause does not stop a rollout that an edit or an undo starts",
                                 rollout.to_revision);
  return resume;
}

// Ends the stop, for whoever decides that.
Commands of_the_stop(const ReadingPass& pass, const RolloutFacts& facts) {
  const World& world = pass.world();
  const SharingRollout& rollout = *facts.rollout;
  // As every stop of a policy without an object.
  if (facts.phase == "AwaitingApproval" && policy_is_gone(world, pass.index(), rollout.policy))
    return {gone_policy_command(world, pass.index(), pass.settings(), rollout.policy)};
  if (facts.phase == "AwaitingApproval")
    return {{"gpu-sharing-operator diff"},
            {fmt::format("gpu-sharing-operator rollout approve {}", rollout.meta.name), {}, Command::Does::asks}};
  const SharingPolicy* policy = world.policies.find(rollout.policy);
  if (facts.ready.code == reason_of(Gate::aborted) || facts.undone())
    return {start_command(rollout.policy, resume_of(rollout, policy))};
  if (facts.ready.code == kConfigInvalid) return {correct_profile_command(pass, rollout.policy)};
  if (facts.ready.code != reason_of(Gate::paused)) {
    Command allow = policy == nullptr ? Command() : spec_command(world, facts.ready.code, *policy, pass.settings());
    return allow.empty() ? Commands() : Commands{std::move(allow)};
  }
  // Without a switch somebody has resumed it, and no operator has looked since.
  Command resume = resume_of(rollout, policy);
  return resume.empty() ? Commands() : Commands{with_revision(rollout, std::move(resume))};
}

// Pods keep nodes from their change: what administrators can decide about that, each decision once. What the owners of
// the pods can do is a comment of the commands that show the pods.
Commands of_busy_nodes(const ReadingPass& pass, const RolloutFacts& facts) {
  Commands out;
  for (const RolloutFacts::NodeRow& row : facts.nodes) {
    const Node* node = pass.world().nodes.find(row.name);
    const NodeAssessment* a = pass.index().find(row.name);
    if (node == nullptr || a == nullptr || !is_about_pods(row.why.code)) continue;
    const PodAdvice advice = advice_on_pods(pass, *node, *a, row.why);
    for (const PodDecision& decision : advice.decisions) {
      Command command = decision.next();
      if (!command.empty() && std::ranges::find(out, command) == out.end()) out.push_back(std::move(command));
    }
  }
  return out;
}

// The policy's nodes that somebody uncordoned during their drain.
Names uncordoned_nodes(const ReadingPass& pass, std::string_view policy) {
  Names out;
  for (const std::string& name : pass.index().nodes_in(Bucket::deferred)) {
    const Node* node = pass.world().nodes.find(name);
    const NodeAssessment* a = pass.index().find(name);
    const auto deferral = node == nullptr ? std::nullopt : deferral_of(*node);
    if (a != nullptr && a->policy.view() == policy && deferral && deferral->by == Deferral::By::person)
      out.push_back(name);
  }
  return out;
}

// A retry cordons those nodes again, which whoever uncordoned them might not want.
Command retry_command(const ReadingPass& pass, std::string_view policy) {
  const Names uncordoned = uncordoned_nodes(pass, policy);
  Command out = start_command(policy);
  out.comment = "retries all failed nodes, once the cause is fixed";
  if (!uncordoned.empty())
    out.comment += fmt::format("; it also cordons {} again, which somebody uncordoned", first_names(uncordoned));
  return out;
}

struct WayBack {
  Command command = {};
  bool to_earlier = false;  // An earlier profile is on record, and the command shows what a return to it would do.
};

// `rollout undo` where it has a profile to return to; else the place where the profile is corrected.
WayBack way_back(const ReadingPass& pass, const SharingRollout& rollout) {
  const World& world = pass.world();
  const std::string undo = fmt::format("gpu-sharing-operator rollout undo {}", rollout.meta.name);
  const SharingPolicy* policy = world.policies.find(rollout.policy);
  const bool is_inline = policy != nullptr && owns_key(*policy, rollout_key_of(rollout));
  const bool has_text = is_inline ? !inline_text_before(world, rollout).empty()
                                  : has_earlier_text(world, pass.index(), rollout.config_map, rollout.key);
  using enum Command::Does;
  if (has_text) return {{undo + " --dry-run", "to go back", goes_back}, true};
  if (is_inline) return {{undo, "to return its nodes to what they ran before this policy's profile", goes_back}};
  return {
      edit_config_map_command(config_map_key(rollout.config_map),
                              fmt::format("to correct key {}: no earlier profile of it is on record", rollout.key))};
}

// After nodes have failed: what the whole rollout needs, once for all of them, for whoever decides that. Nodes that
// failed in a rollout that is complete served no GPU before it: going back does not help them.
Commands of_failures(const ReadingPass& pass, const RolloutFacts& facts) {
  Commands out;
  if (facts.ready.code == reason_of(Gate::aborted) || facts.undone()) return out;
  const SharingRollout& rollout = *facts.rollout;
  const bool of_daemons = !daemonset_of(rollout.config_map).empty();
  if (of_daemons && (facts.went_wrong() || facts.failed > 0))
    out.push_back(roll_back_chart_command(pass.world(), pass.settings()));
  if (!of_daemons && (facts.went_wrong() || (facts.failed > 0 && !facts.finished())))
    out.push_back(way_back(pass, rollout).command);
  if (facts.went_wrong() || facts.failed > 0) out.push_back(retry_command(pass, rollout.policy));
  return out;
}

// Whoever paused or aborted a rollout mostly wants to go back. Nothing for templates of DaemonSets, and nothing without
// an earlier profile.
Commands of_stop_by_person(const ReadingPass& pass, const RolloutFacts& facts, const RecordedStop& stop) {
  const std::string phase = stop.is_set() ? stop.phase : facts.shown_phase();
  const bool stopped = phase == reason_of(Gate::paused) || phase == reason_of(Gate::aborted);
  if (!stopped || !daemonset_of(facts.rollout->config_map).empty()) return {};
  WayBack back = way_back(pass, *facts.rollout);
  return back.to_earlier ? Commands{std::move(back.command)} : Commands();
}

// The same of each aborted rollout of the policy, for which `rollout status` lists the policy alone.
Commands of_aborted_rollouts(const ReadingPass& pass, std::string_view policy) {
  Commands out;
  for (const SharingRollout* rollout : newest_rollouts(pass.world())) {
    if (rollout->policy != policy || !rollout->aborted || present_rollout(*rollout, pass.index()) == nullptr) continue;
    std::ranges::move(of_stop_by_person(pass, facts_of(*rollout), {std::string(reason_of(Gate::aborted)), {}}),
                      std::back_inserter(out));
  }
  return out;
}

// Beside nodes that are about to fail although they are Ready: an earlier profile, while it can still be restored
// without a failure. Nothing for templates of DaemonSets, and nothing without such a profile: the nodes might recover.
Commands of_late_nodes(ReadingPass& pass, const RolloutFacts& facts, const std::vector<NodeStep>& steps) {
  if (facts.went_wrong() || facts.failed > 0 || !daemonset_of(facts.rollout->config_map).empty()) return {};
  const bool is_late = std::ranges::any_of(steps, [&](const NodeStep& step) {
    const Node* node = pass.world().nodes.find(step.node);
    const NodeAssessment* a = pass.index().find(step.node);
    return node != nullptr && a != nullptr && node->ready && !deadline_text(pass, *node, *a).empty();
  });
  WayBack back = is_late ? way_back(pass, *facts.rollout) : WayBack();
  if (!back.to_earlier) return {};
  back.command.comment += ", if the new profile is the cause";
  return {std::move(back.command)};
}

// hold_text() of the first few of those nodes.
Names hold_texts(const World& world, const Names& names) {
  Names out;
  for (const std::string& name : names) {
    const Node* node = world.nodes.find(name);
    std::string text = node == nullptr ? std::string() : hold_text(*node);
    if (!text.empty() && out.size() < kMostOfNodes) out.push_back(std::move(text));
  }
  return out;
}

// Shows why a node is in trouble; empty: it is not. Not the retry of a failed node, which is for all of them together.
Command look_at(ReadingPass& pass, const std::string& name, const Reason& why) {
  const Index& index = pass.index();
  const Node* node = pass.world().nodes.find(name);
  const NodeAssessment* a = index.find(name);
  if (node == nullptr || a == nullptr) return {};
  if (why.code == kHeld) return {};  // hold_texts()
  Command command = trouble_command(index, *node, *a);
  if (command.empty() && is_about_pods(why.code)) command = advice_on_pods(pass, *node, *a, why).next();
  if (command.empty()) command = command_of_reason(pass, *node, *a, why.code);
  if (command.empty() && a->phase == Phase::failed) command = failed_pod_command(index, *node, *a);
  if (command.empty() && a->phase == Phase::failed) command = explain_command(name);
  return command;
}

// look_at() of the nodes, in their order, the first few; one that is the same for several is there once, with their
// names. The name of a node is in most of its commands, and is a comment of the others.
Commands look_at_each(ReadingPass& pass, const std::vector<RolloutFacts::NodeRow>& nodes) {
  std::vector<std::pair<Command, Names>> looks;
  for (const RolloutFacts::NodeRow& row : nodes) {
    const Command command = look_at(pass, row.name, row.why);
    if (command.empty()) continue;
    auto known = std::ranges::find(looks, command, &std::pair<Command, Names>::first);
    if (known == looks.end()) known = looks.insert(known, {command, {}});
    known->second.push_back(row.name);
  }
  Commands out;
  for (const auto& [look, names] : looks | std::views::take(kMostOfNodes)) {
    Command& command = out.emplace_back(look);
    if (names.size() == 1 && command.node == names.front()) continue;
    command.comment += command.comment.empty() ? first_names(names) : fmt::format(" ({})", first_names(names));
  }
  return out;
}

// --- Full budgets: who holds their slots, what returns the holders to service, and which budgets can be raised.

// What returns the nodes that hold the slots to service comes before anything else, and to raise the budgets is the
// last one.
struct FullBudgets {
  Commands holders;
  Commands raises;
};

// Raises the budgets that have no slot left, for whoever decides that. One line for all of them, because raising one of
// several alone changes nothing.
Commands raise_budgets(const ReadingPass& pass, const Names& full, std::string_view policy) {
  const auto is_full = [&](std::string_view budget) { return std::ranges::find(full, budget) != full.end(); };
  const bool of_cluster = is_full(kClusterBudget);
  Names fields;
  Names values;
  const auto add = [&](std::string_view field, std::string_view value) {
    fields.push_back(fmt::format("spec.rollout.{}", field));
    values.push_back(fmt::format("config.{}", value));
  };
  if (is_full(kPolicyBudget)) add(kPolicyBudget, "max-unavailable");
  if (is_full(kGroupBudget)) add(kGroupBudget, "max-unavailable-per-group");
  constexpr std::string_view kOfCluster = "config.cluster-max-unavailable";
  if (fields.empty())
    return of_cluster ? Commands{upgrade_chart_command(pass.world(), pass.settings(),
                                                       fmt::format("and a higher {}", kOfCluster))}
                      : Commands();
  std::string comment = fmt::format("to raise {}", fmt::join(fields, " and "));
  // The operator reads those values when it creates that policy, and never again.
  if (policy == kDefaultPolicy)
    comment += fmt::format("; the chart value{} {} {} for a new cluster only", values.size() == 1 ? "" : "s",
                           fmt::join(values, " and "), values.size() == 1 ? "is" : "are");
  if (of_cluster) comment += fmt::format("; raise the chart value {} with helm upgrade as well", kOfCluster);
  if (fields.size() + (of_cluster ? 1 : 0) > 1)
    comment += ": all of these budgets are full, and one alone frees no slot";
  return {edit_policy_command(policy, std::move(comment))};
}

// The nodes that hold the slots of the full budgets that the rollout waits for; empty also if its status says that it
// waits for something else.
Names holders_for(const ReadingPass& pass, const RolloutFacts& facts) {
  const SharingRollout& rollout = *facts.rollout;
  if (facts.ready.code != kBudgetExhausted && facts.ready.facts().budgets.empty()) return {};
  // No plan knows who holds the slots that the template of a DaemonSet waits for.
  if (!daemonset_of(rollout.config_map).empty()) return facts.ready.facts().holders;
  const ProfileRollout* nodes = pass.index().record ? profile_rollout_of(rollout, pass.index()) : nullptr;
  if (nodes == nullptr) return {};
  const std::set<std::string> names = holders_of_awaited_slots(pass.pass(), rollout_key_of(rollout), *nodes);
  return {names.begin(), names.end()};
}

// The nodes that hold the slots that any rollout of the policy waits for.
Names holders_for(const ReadingPass& pass, std::string_view policy) {
  std::set<std::string> names;
  for (const auto& [key, rollout] : pass.index().profile_rollouts) {
    if (key.policy == policy && pass.index().record) names.merge(holders_of_awaited_slots(pass.pass(), key, rollout));
  }
  return {names.begin(), names.end()};
}

// "kubectl get nodes a01 a02  # COMMENT; and 3 more": the first few nodes.
Command command_for_first(std::string_view command, const Names& nodes, std::string_view comment) {
  const std::size_t shown = std::min(nodes.size(), kMostNames);
  const std::string more = shown < nodes.size() ? fmt::format("; and {} more", nodes.size() - shown) : std::string();
  return {fmt::format("{} {}", command, fmt::join(nodes | std::views::take(shown), " ")),
          fmt::format("{}{}", comment, more)};
}

// For whoever keeps holders of the slots out of service. Nothing about a node that the operator changes: its slot is
// free when its change ends.
Commands of_holders_out_of_service(const ReadingPass& pass, const Names& holders) {
  std::map<SlotHold, Names> by_hold;
  for (const std::string& name : holders) by_hold[slot_hold(pass.world(), pass.index(), name)].push_back(name);
  Commands out;
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
    for (const std::string& name : by_hold[hold] | std::views::take(kMostNames)) {
      Command& command = out.emplace_back(explain_command(name));
      command.comment = fmt::format("it holds a slot: {}", describe(hold));
    }
  }
  return out;
}

FullBudgets of_exhausted_budgets(const ReadingPass& pass, const Names& holders, const Facts& about,
                                 std::string_view policy) {
  const auto changes = [&](const std::string& name) {
    return slot_hold(pass.world(), pass.index(), name) == SlotHold::in_change;
  };
  // All are in a change: the rollout continues by itself.
  if (!holders.empty() && std::ranges::all_of(holders, changes)) return {};
  return {of_holders_out_of_service(pass, holders), raise_budgets(pass, about.budgets, policy)};
}

// The policies of other rollouts whose nodes hold the slots.
Commands of_other_holders(const ReadingPass& pass, const Names& holders, std::string_view policy) {
  std::map<std::string, Names> by_policy;
  for (const std::string& name : holders) {
    const NodeAssessment* a = pass.index().find(name);
    const SlotHold hold = slot_hold(pass.world(), pass.index(), name);
    const bool by_rollout = hold == SlotHold::in_change || hold == SlotHold::failed || hold == SlotHold::none;
    if (a != nullptr && by_rollout && !a->policy.empty() && a->policy != policy)
      by_policy[std::string(a->policy.view())].push_back(name);
  }
  Commands out;
  for (const auto& [other, nodes] : by_policy)
    out.push_back({fmt::format("gpu-sharing-operator rollout status policy/{}", other),
                   fmt::format("{} {} the slots", first_names(nodes), nodes.size() == 1 ? "holds" : "hold"),
                   Command::Does::watches});
  return out;
}

// Nothing while a node of the rollout makes progress: a wave that uses its budget is no trouble. A node that waits for
// its workloads, or for its kubelet, can keep its slot for long; so can the nodes of another rollout.
// `steps`: the rollout's nodes in progress.
FullBudgets way_out_of_full_budgets(const ReadingPass& pass, const RolloutFacts& facts,
                                    const std::vector<NodeStep>& steps) {
  const std::string& policy = facts.rollout->policy;
  const Names holders = holders_for(pass, facts);
  if (facts.ready.code == kBudgetExhausted) return of_exhausted_budgets(pass, holders, facts.ready.facts(), policy);
  const auto makes_progress = [](const NodeStep& step) { return step.phase != Phase::draining && step.ready; };
  if (std::ranges::any_of(steps, makes_progress)) return {};
  FullBudgets out{of_holders_out_of_service(pass, holders), {}};
  std::ranges::move(of_other_holders(pass, holders, policy), std::back_inserter(out.holders));
  if (!steps.empty() || !out.holders.empty()) out.raises = raise_budgets(pass, facts.ready.facts().budgets, policy);
  return out;
}

}  // namespace

std::vector<Command> way_out(ReadingPass& pass, const RolloutReport& report) {
  const RolloutFacts& facts = report.facts;
  const bool is_stopped = report.stop.is_set();
  if (is_stopped && report.stop.resume.empty()) return {};  // A retry is requested: what else is known ends.
  // What the status says of the time before the stop is not what ends it.
  Commands out = is_stopped ? Commands{with_revision(*facts.rollout, report.stop.resume)} : of_the_stop(pass, facts);
  FullBudgets full = is_stopped ? FullBudgets() : way_out_of_full_budgets(pass, facts, report.steps);
  std::ranges::move(full.holders, std::back_inserter(out));
  std::vector<RolloutFacts::NodeRow> nodes = facts.nodes;
  for (const NodeStep& step : report.steps) {
    if (std::ranges::find(nodes, step.node, &RolloutFacts::NodeRow::name) == nodes.end())
      nodes.push_back({step.node, {}, {}});
  }
  std::ranges::move(look_at_each(pass, nodes), std::back_inserter(out));
  if (!is_stopped && facts.advances()) {
    std::ranges::move(of_busy_nodes(pass, facts), std::back_inserter(out));
    std::ranges::move(of_late_nodes(pass, facts, report.steps), std::back_inserter(out));
  }
  std::ranges::move(of_stop_by_person(pass, facts, report.stop), std::back_inserter(out));
  for (Command& command : of_failures(pass, facts)) {
    if (std::ranges::find(out, command) == out.end()) out.push_back(std::move(command));
  }
  std::ranges::move(full.raises, std::back_inserter(out));
  return out;
}

std::vector<std::string> holds_on(const ReadingPass& pass, const RolloutFacts& facts) {
  Names names;
  for (const RolloutFacts::NodeRow& row : facts.nodes) {
    if (row.why.code == kHeld) names.push_back(row.name);
  }
  return hold_texts(pass.world(), names);
}

std::vector<Command> way_out_of_failed(ReadingPass& pass, std::string_view policy,
                                       const std::vector<RolloutFacts::NodeRow>& nodes, bool retry) {
  Commands out = look_at_each(pass, nodes);
  if (retry) out.push_back(retry_command(pass, policy));
  return out;
}

namespace {

// Ends the wait, for whoever decides that. A status names a stop beside nodes in progress in its message alone.
Commands of_the_wait(ReadingPass& pass, const PolicyWait& wait) {
  const World& world = pass.world();
  if (wait.why.code == kRollingOut) return pass.stop_commands_of(wait.policy);
  if (wait.why.code == kPolicyGone) return {gone_policy_command(world, pass.index(), pass.settings(), wait.policy)};
  if (wait.why.code == kConfigInvalid) return {correct_profile_command(pass, wait.policy)};
  if (wait.why.code == kHeld) return {};  // hold_texts()
  const bool by_switch =
      wait.why.code == reason_of(Gate::aborted) || wait.why.code == kUndone || wait.why.code == reason_of(Gate::paused);
  if (Commands commands = by_switch ? pass.stop_commands_of(wait.policy) : Commands(); !commands.empty())
    return commands;
  if (wait.why.code == reason_of(Gate::aborted) || wait.why.code == kUndone) return {start_command(wait.policy)};
  if (wait.why.code == reason_of(Gate::max_failures)) return {retry_command(pass, wait.policy)};
  if (wait.why.code == reason_of(Gate::approval)) return {{"gpu-sharing-operator diff"}, approve_command(wait.policy)};
  if (wait.why.code == kBudgetExhausted) {
    // It has no node in progress: those that hold the slots are out of service for another cause, or in a change of
    // another rollout.
    FullBudgets full = of_exhausted_budgets(pass, holders_for(pass, wait.policy), wait.why.facts(), wait.policy);
    std::ranges::move(full.raises, std::back_inserter(full.holders));
    return std::move(full.holders);
  }
  if (wait.why.code == reason_of(Gate::paused) && wait.paused) return {resume_command("policy/" + wait.policy)};
  const SharingPolicy* policy = world.policies.find(wait.policy);
  Command allow = policy == nullptr ? Command() : spec_command(world, wait.why.code, *policy, pass.settings());
  Commands out;
  if (!allow.empty()) out.push_back(std::move(allow));
  if (wait.why.code == reason_of(Gate::outside_window) && can_go_back(world, pass.index(), wait.policy))
    out.push_back({"gpu-sharing-operator rollout undo --dry-run", "to go back, if the edit that waits is wrong",
                   Command::Does::goes_back});
  return out;
}

}  // namespace

void add_way_out(ReadingPass& pass, PolicyWait& wait) {
  wait.next = of_the_wait(pass, wait);
  if (wait.why.code == reason_of(Gate::aborted)) {
    wait.runs = loaded_revisions_text(pass.world(), pass.index(), wait.policy);
    std::ranges::move(of_aborted_rollouts(pass, wait.policy), std::back_inserter(wait.next));
  }
  if (wait.why.code == kHeld) wait.held = hold_texts(pass.world(), wait.nodes);
  if (wait.nodes.empty())
    wait.steps = steps_to(pass, wait.policy, {}, kMostListedSteps);  // Else it is about those alone.
}

}  // namespace gso
