#include "controller/commands/rollout/way_out.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>

#include "controller/commands/rollout/history.h"
#include "reconcilers/explain/commands.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/explain/revisions.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/rollout/failures.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/status/status.h"

namespace gso {
namespace {

// The most commands about nodes that are printed together.
constexpr std::size_t kMostOfNodes = 6;

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
std::string with_revision(const SharingRollout& rollout, const std::string& resume) {
  const bool goes_on = resume == fmt::format("gpu-sharing-operator rollout resume {}", rollout.meta.name);
  return !goes_on
             ? resume
             : fmt::format("{}  # continues to {}; the pause does not stop a rollout that an edit or an undo starts",
                           resume, rollout.to_revision);
}

// Ends the stop, for whoever decides that.
std::vector<std::string> of_the_stop(const ReadingPass& pass, const RolloutFacts& facts) {
  const World& world = pass.world();
  const SharingRollout& rollout = *facts.rollout;
  const std::string command = "gpu-sharing-operator rollout";
  // As every stop of a policy without an object.
  if (facts.phase == "AwaitingApproval" && policy_is_gone(world, pass.index(), rollout.policy))
    return {gone_policy_command(world, pass.index(), pass.settings(), rollout.policy).text()};
  if (facts.phase == "AwaitingApproval")
    return {"gpu-sharing-operator diff", fmt::format("{} approve {}", command, rollout.meta.name)};
  const SharingPolicy* policy = world.policies.find(rollout.policy);
  if (facts.reason == reason_of(Gate::aborted) || facts.undone())
    return {start_command(rollout.policy, {resume_of(rollout, policy)}).text()};
  if (facts.reason == kConfigInvalid) return {correct_profile_command(pass, rollout.policy).text()};
  if (facts.reason != reason_of(Gate::paused)) {
    const Command allow = policy == nullptr ? Command() : spec_command(world, facts.reason, *policy, pass.settings());
    return allow.empty() ? std::vector<std::string>() : std::vector{allow.text()};
  }
  // Without a switch somebody has resumed it, and no operator has looked since.
  const std::string resume = resume_of(rollout, policy);
  return resume.empty() ? std::vector<std::string>() : std::vector{with_revision(rollout, resume)};
}

using Names = std::vector<std::string>;

// Pods keep nodes from their change: what administrators can decide about that, each decision once. What the owners of
// the pods can do is a comment of the commands that show the pods.
std::vector<std::string> of_busy_nodes(const ReadingPass& pass, const RolloutFacts& facts) {
  std::vector<std::string> out;
  for (const RolloutFacts::NodeRow& row : facts.nodes) {
    const Node* node = pass.world().nodes.find(row.name);
    const NodeAssessment* a = pass.index().find(row.name);
    if (node == nullptr || a == nullptr || !is_about_pods(row.reason)) continue;
    const PodAdvice advice = advice_on_pods(pass, *node, *a, {row.reason, row.message});
    for (const PodDecision& decision : advice.decisions) {
      std::string command = decision.next().text();
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
std::string retry_command(const ReadingPass& pass, std::string_view policy) {
  const Names uncordoned = uncordoned_nodes(pass, policy);
  return fmt::format(
      "gpu-sharing-operator rollout start {}  # retries all failed nodes, once the cause is fixed{}", policy,
      uncordoned.empty()
          ? ""
          : fmt::format("; it also cordons {} again, which somebody uncordoned", first_names(uncordoned)));
}

struct WayBack {
  std::string command;
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
  if (has_text) return {undo + " --dry-run  # to go back", true};
  if (is_inline) return {undo + "  # to return its nodes to what they ran before this policy's profile"};
  const ObjectKey config_map = config_map_key(rollout.config_map);
  return {fmt::format(
      "kubectl edit configmap {} --namespace {}  # to correct key {}: no earlier profile of it is on record",
      config_map.name, config_map.ns, rollout.key)};
}

// After nodes have failed: what the whole rollout needs, once for all of them, for whoever decides that. Nodes that
// failed in a rollout that is complete served no GPU before it: going back does not help them.
std::vector<std::string> of_failures(const ReadingPass& pass, const RolloutFacts& facts) {
  std::vector<std::string> out;
  if (facts.reason == reason_of(Gate::aborted) || facts.undone()) return out;
  const SharingRollout& rollout = *facts.rollout;
  const bool of_daemons = !daemonset_of(rollout.config_map).empty();
  if (of_daemons && (facts.went_wrong() || facts.failed > 0))
    out.push_back(roll_back_chart_command(pass.world(), pass.settings()).text());
  if (!of_daemons && (facts.went_wrong() || (facts.failed > 0 && !facts.finished())))
    out.push_back(way_back(pass, rollout).command);
  if (facts.went_wrong() || facts.failed > 0) {
    out.push_back(retry_command(pass, rollout.policy));
  }
  return out;
}

// Whoever paused or aborted a rollout mostly wants to go back. Nothing for templates of DaemonSets, and nothing without
// an earlier profile.
Names of_stop_by_person(const ReadingPass& pass, const RolloutFacts& facts, const RecordedStop& stop) {
  const std::string phase = stop.is_set() ? stop.phase : facts.shown_phase();
  const bool stopped = phase == reason_of(Gate::paused) || phase == reason_of(Gate::aborted);
  if (!stopped || !daemonset_of(facts.rollout->config_map).empty()) return {};
  WayBack back = way_back(pass, *facts.rollout);
  return back.to_earlier ? Names{std::move(back.command)} : Names();
}

// The same of each aborted rollout of the policy, for which `rollout status` lists the policy alone.
Names of_aborted_rollouts(const ReadingPass& pass, std::string_view policy) {
  Names out;
  for (const SharingRollout* rollout : newest_rollouts(pass.world())) {
    if (rollout->policy != policy || !rollout->aborted || present_rollout(*rollout, pass.index()) == nullptr) continue;
    std::ranges::move(of_stop_by_person(pass, facts_of(*rollout), {std::string(reason_of(Gate::aborted)), {}}),
                      std::back_inserter(out));
  }
  return out;
}

// Beside nodes that are about to fail although they are Ready: an earlier profile, while it can still be restored
// without a failure. Nothing for templates of DaemonSets, and nothing without such a profile: the nodes might recover.
std::vector<std::string> of_late_nodes(ReadingPass& pass, const RolloutFacts& facts,
                                       const std::vector<NodeStep>& steps) {
  if (facts.went_wrong() || facts.failed > 0 || !daemonset_of(facts.rollout->config_map).empty()) return {};
  const bool is_late = std::ranges::any_of(steps, [&](const NodeStep& step) {
    const Node* node = pass.world().nodes.find(step.node);
    const NodeAssessment* a = pass.index().find(step.node);
    return node != nullptr && a != nullptr && node->ready && !deadline_text(pass, *node, *a).empty();
  });
  const WayBack back = is_late ? way_back(pass, *facts.rollout) : WayBack();
  if (!back.to_earlier) return {};
  return {back.command + ", if the new profile is the cause"};
}

// hold_text() of the first few of those nodes.
std::vector<std::string> hold_texts(const World& world, const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const std::string& name : names) {
    const Node* node = world.nodes.find(name);
    std::string text = node == nullptr ? std::string() : hold_text(*node);
    if (!text.empty() && out.size() < kMostOfNodes) out.push_back(std::move(text));
  }
  return out;
}

// Shows why a node is in trouble; empty: it is not. Not the retry of a failed node, which is for all of them together.
Command look_at(ReadingPass& pass, const std::string& name, std::string_view reason, const std::string& message) {
  const World& world = pass.world();
  const FleetIndex::Impl& index = pass.index();
  const Node* node = world.nodes.find(name);
  const NodeAssessment* a = index.find(name);
  if (node == nullptr || a == nullptr) return {};
  if (reason == kHeld) return {};  // hold_texts()
  Command command = trouble_command(index, *node, *a);
  if (command.empty() && is_about_pods(reason)) command = advice_on_pods(pass, *node, *a, {reason, message}).next();
  if (command.empty()) command = command_of_reason(pass, *node, *a, reason);
  if (command.empty() && a->phase == Phase::failed) command = failed_pod_command(index, *node, *a);
  if (command.empty() && a->phase == Phase::failed) command = explain_command(name);
  return command;
}

// The commands about nodes, in their order; one that is the same for several nodes is there once, with their names.
class NodeCommands {
 public:
  void add(const std::string& node, Command command) {
    if (command.empty()) return;
    const auto known = std::ranges::find(commands_, command, &OfNodes::command);
    if (known == commands_.end()) {
      commands_.push_back({std::move(command), {node}});
    } else {
      known->nodes.push_back(node);
    }
  }
  // At most so many.
  [[nodiscard]] std::vector<std::string> lines(std::size_t most) const {
    std::vector<std::string> out;
    for (const OfNodes& entry : commands_) {
      // The name of a node is in most of its commands, and is a comment of the others.
      const bool named = entry.nodes.size() == 1 && entry.command.node == entry.nodes.front();
      Command command = entry.command;
      const std::string names = named ? std::string() : first_names(entry.nodes);
      if (!names.empty()) command.comment += command.comment.empty() ? names : fmt::format(" ({})", names);
      if (out.size() < most) out.push_back(command.text());
    }
    return out;
  }

 private:
  struct OfNodes {
    Command command;
    std::vector<std::string> nodes;
  };
  std::vector<OfNodes> commands_;
};

}  // namespace

std::vector<std::string> way_out(ReadingPass& pass, const RolloutFacts& facts, const RolloutOutlook& outlook) {
  const std::vector<NodeStep>& steps = outlook.steps;
  if (outlook.stop.is_set() && outlook.stop.resume.empty())
    return {};  // A retry is requested: what else is known ends.
  // What the status says of the time before the stop is not what ends it.
  std::vector<std::string> out = outlook.stop.is_set() ? std::vector{with_revision(*facts.rollout, outlook.stop.resume)}
                                                       : of_the_stop(pass, facts);
  FullBudgets full = outlook.stop.is_set() ? FullBudgets() : way_out_of_full_budgets(pass, facts, steps);
  std::ranges::move(full.holders, std::back_inserter(out));
  NodeCommands commands;
  for (const RolloutFacts::NodeRow& row : facts.nodes)
    commands.add(row.name, look_at(pass, row.name, row.reason, row.message));
  for (const NodeStep& step : steps) {
    const bool listed = std::ranges::find(facts.nodes, step.node, &RolloutFacts::NodeRow::name) != facts.nodes.end();
    if (!listed) commands.add(step.node, look_at(pass, step.node, {}, {}));
  }
  std::ranges::move(commands.lines(kMostOfNodes), std::back_inserter(out));
  if (!outlook.stop.is_set() && facts.advances()) {
    std::ranges::move(of_busy_nodes(pass, facts), std::back_inserter(out));
    std::ranges::move(of_late_nodes(pass, facts, steps), std::back_inserter(out));
  }
  std::ranges::move(of_stop_by_person(pass, facts, outlook.stop), std::back_inserter(out));
  for (std::string& line : of_failures(pass, facts)) {
    if (std::ranges::find(out, line) == out.end()) out.push_back(std::move(line));
  }
  std::ranges::move(full.raises, std::back_inserter(out));
  return out;
}

std::vector<std::string> holds_on(const ReadingPass& pass, const RolloutFacts& facts) {
  std::vector<std::string> names;
  for (const RolloutFacts::NodeRow& row : facts.nodes) {
    if (row.reason == kHeld) names.push_back(row.name);
  }
  return hold_texts(pass.world(), names);
}

std::vector<std::string> way_out_of_failed(ReadingPass& pass, std::string_view policy,
                                           const std::vector<RolloutFacts::NodeRow>& nodes, bool retry) {
  NodeCommands commands;
  for (const RolloutFacts::NodeRow& row : nodes)
    commands.add(row.name, look_at(pass, row.name, row.reason, row.message));
  std::vector<std::string> out = commands.lines(kMostOfNodes);
  if (retry) out.push_back(retry_command(pass, policy));
  return out;
}

namespace {

std::vector<std::string> texts_of(const std::vector<Command>& commands) {
  std::vector<std::string> out;
  for (const Command& command : commands) out.push_back(command.text());
  return out;
}

// Ends the wait, for whoever decides that. A status names a stop beside nodes in progress in its message alone.
std::vector<std::string> of_the_wait(ReadingPass& pass, const PolicyWait& wait) {
  const World& world = pass.world();
  const std::string command = "gpu-sharing-operator rollout";
  if (wait.reason == kRollingOut) return texts_of(pass.stop_commands_of(wait.policy));
  if (wait.reason == kPolicyGone)
    return {gone_policy_command(world, pass.index(), pass.settings(), wait.policy).text()};
  if (wait.reason == kConfigInvalid) return {correct_profile_command(pass, wait.policy).text()};
  if (wait.reason == kHeld) return {};  // hold_texts()
  const bool by_switch =
      wait.reason == reason_of(Gate::aborted) || wait.reason == kUndone || wait.reason == reason_of(Gate::paused);
  if (const auto commands = by_switch ? pass.stop_commands_of(wait.policy) : std::vector<Command>(); !commands.empty())
    return texts_of(commands);
  if (wait.reason == reason_of(Gate::aborted) || wait.reason == kUndone) return {start_command(wait.policy).text()};
  if (wait.reason == reason_of(Gate::max_failures)) return {retry_command(pass, wait.policy)};
  if (wait.reason == reason_of(Gate::approval))
    return {"gpu-sharing-operator diff", fmt::format("{} approve policy/{}", command, wait.policy)};
  if (wait.reason == kBudgetExhausted) {
    FullBudgets full = way_out_of_full_budgets(pass, wait);
    std::ranges::move(full.raises, std::back_inserter(full.holders));
    return std::move(full.holders);
  }
  if (wait.reason == reason_of(Gate::paused) && wait.paused)
    return {fmt::format("{} resume policy/{}", command, wait.policy)};
  const SharingPolicy* policy = world.policies.find(wait.policy);
  const Command allow = policy == nullptr ? Command() : spec_command(world, wait.reason, *policy, pass.settings());
  std::vector<std::string> out;
  if (!allow.empty()) out.push_back(allow.text());
  if (wait.reason == reason_of(Gate::outside_window) && can_go_back(world, pass.index(), wait.policy))
    out.push_back(command + " undo --dry-run  # to go back, if the edit that waits is wrong");
  return out;
}

}  // namespace

WaitOutlook outlook_of(ReadingPass& pass, const PolicyWait& wait) {
  WaitOutlook out;
  out.next = of_the_wait(pass, wait);
  if (wait.reason == reason_of(Gate::aborted)) {
    out.runs = loaded_revisions_text(pass.world(), pass.index(), wait.policy);
    std::ranges::move(of_aborted_rollouts(pass, wait.policy), std::back_inserter(out.next));
  }
  if (wait.reason == kHeld) out.held = hold_texts(pass.world(), wait.nodes);
  if (wait.nodes.empty())
    out.steps = steps_to(pass, wait.policy, {}, kMostListedSteps);  // Else it is about those alone.
  return out;
}

}  // namespace gso
