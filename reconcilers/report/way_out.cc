// What to type next about a rollout or a wait.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
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

// What a resume continues to must not be a surprise, nor that the pause is of this rollout alone.
Command with_revision(const SharingRollout& rollout, Command resume) {
  if (resume == resume_command(rollout.meta.name))
    resume.comment = fmt::format("continues to {}; the pause does not stop a rollout that an edit or an undo starts",
                                 rollout.to_revision);
  return resume;
}

bool is_of_template(const SharingRollout& rollout) {
  return !daemonset_of(rollout.config_map).empty();
}

// Raises the budgets that have no slot left, for whoever decides that. One line for all of them, because raising one of
// several alone changes nothing.
Command raise_budgets(const ReadingPass& pass, const Names& full, std::string_view policy) {
  const auto is_full = [&](std::string_view budget) { return std::ranges::find(full, budget) != full.end(); };
  const bool of_cluster = is_full(kClusterBudget);
  constexpr std::string_view kOfCluster = "config.cluster-max-unavailable";
  Names fields;
  Names values;
  for (const auto& [budget, value] : {std::pair(kPolicyBudget, "config.max-unavailable"),
                                      std::pair(kGroupBudget, "config.max-unavailable-per-group")}) {
    if (!is_full(budget)) continue;
    fields.push_back(fmt::format("spec.rollout.{}", budget));
    values.emplace_back(value);
  }
  if (fields.empty())
    return of_cluster ? upgrade_chart_command(pass.world(), pass.settings(), fmt::format("and a higher {}", kOfCluster))
                      : Command();
  std::string comment = fmt::format("to raise {}", fmt::join(fields, " and "));
  // The operator reads those values when it creates that policy, and never again.
  if (policy == kDefaultPolicy)
    comment += fmt::format("; the chart value{} {} {} for a new cluster only", values.size() == 1 ? "" : "s",
                           fmt::join(values, " and "), values.size() == 1 ? "is" : "are");
  if (of_cluster) comment += fmt::format("; raise the chart value {} with helm upgrade as well", kOfCluster);
  if (fields.size() + (of_cluster ? 1 : 0) > 1)
    comment += ": all of these budgets are full, and one alone frees no slot";
  return edit_policy_command(policy, std::move(comment));
}

// The commands of one rollout, wait or failure, each once, in the order in which they are added.
class Ways {
 public:
  explicit Ways(ReadingPass& pass) : pass_(pass), world_(pass.world()), index_(pass.index()) {}

  void add(Command command) {
    if (!command.empty() && std::ranges::find(out_, command) == out_.end()) out_.push_back(std::move(command));
  }
  std::vector<Command> take() { return std::move(out_); }

  // --- Stops.

  // Ends the stop of a rollout, for whoever decides that.
  void end_stop(const RolloutFacts& facts) {
    const SharingRollout& rollout = *facts.rollout;
    const Command resume = resume_of(rollout, world_.policies.find(rollout.policy));
    if (facts.phase == "AwaitingApproval") {
      // As every stop of a policy without an object.
      if (policy_is_gone(world_, index_, rollout.policy))
        return add(gone_policy_command(world_, index_, pass_.settings(), rollout.policy));
      add({"gpu-sharing-operator diff"});
      add({fmt::format("gpu-sharing-operator rollout approve {}", rollout.meta.name), {}, Command::Does::asks});
    } else if (facts.ready.code == reason_of(Gate::aborted) || facts.undone()) {
      add(start_command(rollout.policy, resume));
    } else if (facts.ready.code == reason_of(Gate::paused)) {
      // Without a switch somebody has resumed it, and no operator has looked since.
      add(with_revision(rollout, resume));
    } else {
      end_by_reason(facts.ready.code, rollout.policy);
    }
  }

  // Ends the wait of a policy, for whoever decides that. A status names a stop beside nodes in progress in its message
  // alone.
  void end_wait(const PolicyWait& wait) {
    const std::string_view code = wait.why.code;
    const Gate gate = named_gate(code);
    const bool has_ended = gate == Gate::aborted || gate == Gate::undone;
    if (code == kRollingOut || has_ended || gate == Gate::paused) {
      const std::vector<Command> by_switch = pass_.stop_commands_of(wait.policy);
      for (const Command& command : by_switch) add(command);
      if (code == kRollingOut || !by_switch.empty()) return;
    }
    if (has_ended) return add(start_command(wait.policy));
    if (code == kPolicyGone) return add(gone_policy_command(world_, index_, pass_.settings(), wait.policy));
    if (gate == Gate::max_failures) return add(retry(wait.policy));
    if (gate == Gate::paused && wait.paused) return add(resume_command("policy/" + wait.policy));
    // It has no node in progress: those that hold the slots are out of service for another cause, or in a change of
    // another rollout.
    if (code == kBudgetExhausted) return add(free_slots(holders_for(wait.policy), wait.why, wait.policy, {}));
    if (gate == Gate::approval) {
      add({"gpu-sharing-operator diff"});
      return add(approve_command(wait.policy));
    }
    end_by_reason(code, wait.policy);
    if (gate == Gate::outside_window && can_go_back(wait.policy))
      add({"gpu-sharing-operator rollout undo --dry-run", "to go back, if the edit that waits is wrong"});
  }

  // --- What failed, and the way back.

  // A retry cordons nodes again that somebody uncordoned during their drain, which whoever did might not want.
  Command retry(std::string_view policy) const {
    Names uncordoned;
    for (const std::string& name : index_.nodes_in(Bucket::deferred)) {
      const Node* node = world_.nodes.find(name);
      const NodeAssessment* a = index_.find(name);
      const auto deferral = node == nullptr ? std::nullopt : deferral_of(*node);
      if (a != nullptr && a->policy.view() == policy && deferral && deferral->by == Deferral::By::person)
        uncordoned.push_back(name);
    }
    Command out = start_command(policy);
    out.comment = "retries all failed nodes, once the cause is fixed";
    if (!uncordoned.empty())
      out.comment += fmt::format("; it also cordons {} again, which was uncordoned", first_names(uncordoned));
    return out;
  }

  // After nodes have failed: what the whole rollout needs, once for all of them, for whoever decides that. Nodes that
  // failed in a rollout that is complete served no GPU before it: going back does not help them.
  void after_failures(const RolloutFacts& facts) {
    const bool has_ended = facts.ready.code == reason_of(Gate::aborted) || facts.undone();
    if (has_ended || !(facts.went_wrong() || facts.failed > 0)) return;
    if (is_of_template(*facts.rollout))
      add(roll_back_chart_command(world_, pass_.settings()));
    else if (facts.went_wrong() || !facts.finished())
      add(way_back(*facts.rollout));
    add(retry(facts.rollout->policy));
  }

  // Whoever paused or aborted a rollout mostly wants to go back.
  void after_stop_by_person(const SharingRollout& rollout, std::string_view phase) {
    if (phase == reason_of(Gate::paused) || phase == reason_of(Gate::aborted)) add(to_earlier(rollout));
  }

  // The same of each aborted rollout of the policy, for which `rollout status` lists the policy alone.
  void after_aborts(std::string_view policy) {
    for (const SharingRollout* rollout : newest_rollouts(world_))
      if (rollout->policy == policy && rollout->aborted && present_rollout(*rollout, index_) != nullptr)
        add(to_earlier(*rollout));
  }

  // Beside nodes that are about to fail although they are Ready: an earlier profile, while it can still be restored
  // without a failure. Nothing without such a profile: the nodes might recover.
  void before_failures(const RolloutFacts& facts, const std::vector<NodeStep>& steps) {
    if (facts.went_wrong() || facts.failed > 0) return;
    const bool is_late = std::ranges::any_of(steps, [&](const NodeStep& step) {
      const Node* node = world_.nodes.find(step.node);
      const NodeAssessment* a = index_.find(step.node);
      return node != nullptr && a != nullptr && node->ready && !deadline_text(pass_, *node, *a).empty();
    });
    Command back = is_late ? to_earlier(*facts.rollout) : Command();
    back.comment += ", if the new profile is the cause";
    add(std::move(back));
  }

  // --- Nodes.

  // Pods keep nodes from their change: what administrators can decide about that. What the owners of the pods can do is
  // a comment of the commands that show the pods.
  void free_busy_nodes(const RolloutFacts& facts) {
    for (const RolloutFacts::NodeRow& row : facts.nodes) {
      const Node* node = world_.nodes.find(row.name);
      const NodeAssessment* a = index_.find(row.name);
      if (node == nullptr || a == nullptr || !is_about_pods(row.why.code)) continue;
      for (const PodDecision& decision : advice_on_pods(pass_, *node, *a, row.why).decisions) add(decision.next());
    }
  }

  // Shows the trouble of each node, in their order, of the first few; what is the same for several is there once, with
  // their names. The name of a node is in most of its commands, and is a comment of the others.
  void look_at_each(const std::vector<RolloutFacts::NodeRow>& nodes) {
    std::vector<std::pair<Command, Names>> looks;
    for (const RolloutFacts::NodeRow& row : nodes) {
      const Node* node = world_.nodes.find(row.name);
      const NodeAssessment* a = index_.find(row.name);
      if (node == nullptr || a == nullptr) continue;
      const Command command = trouble_command(pass_, *node, *a, row.why);
      if (command.empty()) continue;
      auto known = std::ranges::find(looks, command, &std::pair<Command, Names>::first);
      if (known == looks.end()) known = looks.insert(known, {command, {}});
      known->second.push_back(row.name);
    }
    for (auto& [command, names] : looks | std::views::take(kMostOfNodes)) {
      if (names.size() > 1 || command.node != names.front())
        command.comment += command.comment.empty() ? first_names(names) : fmt::format(" ({})", first_names(names));
      add(std::move(command));
    }
  }

  // --- Full budgets.

  // The nodes that hold the slots of the full budgets that the rollout waits for; empty also if its status says that it
  // waits for something else.
  Names holders_for(const RolloutFacts& facts) const {
    const SharingRollout& rollout = *facts.rollout;
    if (facts.ready.code != kBudgetExhausted && facts.ready.facts().budgets.empty()) return {};
    // No plan knows who holds the slots that the template of a DaemonSet waits for.
    if (is_of_template(rollout)) return facts.ready.facts().holders;
    const ProfileRollout* nodes = index_.record ? profile_rollout_of(rollout, index_) : nullptr;
    if (nodes == nullptr) return {};
    const std::set<std::string> names = holders_of_awaited_slots(pass_.pass(), rollout_key_of(rollout), *nodes);
    return {names.begin(), names.end()};
  }

  // Adds what returns the nodes that hold the slots to service. Returns what raises the budgets, which comes after
  // everything else. Neither while a node of the rollout makes progress (`steps`: its nodes in progress), or while all
  // holders do if it has none: a wave that uses its budget is no trouble. A node that waits for its workloads, or for
  // its kubelet, can keep its slot for long; so can the nodes of another rollout.
  Command free_slots(const Names& holders, const Reason& why, std::string_view policy,
                     const std::vector<NodeStep>& steps) {
    const bool exhausted = why.code == kBudgetExhausted;
    const auto makes_progress = [](const NodeStep& step) { return step.phase != Phase::draining && step.ready; };
    const auto changes = [&](const std::string& name) { return hold_of(name) == SlotHold::in_change; };
    const bool goes_on = exhausted ? !holders.empty() && std::ranges::all_of(holders, changes)
                                   : std::ranges::any_of(steps, makes_progress);
    if (goes_on) return {};
    const std::size_t before = out_.size();
    add_out_of_service(holders);
    if (!exhausted) add_other_rollouts(holders, policy);
    const bool waits = exhausted || !steps.empty() || out_.size() > before;
    return waits ? raise_budgets(pass_, why.facts().budgets, policy) : Command();
  }

 private:
  // Where a rollout and a policy without one are alike.
  void end_by_reason(std::string_view code, std::string_view policy) {
    if (code == kConfigInvalid) return add(correct_profile(policy));
    if (const SharingPolicy* object = world_.policies.find(policy))
      add(spec_command(world_, code, *object, pass_.settings()));
  }

  // Corrects the invalid profile of the policy's nodes where it is chosen; `audit` names what is known only to a
  // status.
  Command correct_profile(std::string_view policy) const {
    for (const auto& [key, rollout] : index_.profile_rollouts) {
      const auto invalid = rollout.blocked.find(std::string(kConfigInvalid));
      if (key.policy != policy || invalid == rollout.blocked.end()) continue;
      for (const std::string& name : invalid->second) {
        const Node* node = world_.nodes.find(name);
        if (node != nullptr && node->ready) return next_step(pass_, *node, index_.find(name), {});
      }
    }
    return {"gpu-sharing-operator audit"};
  }

  // Nodes of the policy do not run the text of their key yet, and an earlier one is on record.
  bool can_go_back(std::string_view policy) const {
    return std::ranges::any_of(index_.profile_rollouts, [&](const auto& entry) {
      const auto& [key, rollout] = entry;
      return key.policy == policy && rollout.tally.settled < rollout.tally.total &&
             has_earlier_text(world_, index_, key.config_map, key.key);
    });
  }

  bool is_inline(const SharingRollout& rollout) const {
    const SharingPolicy* policy = world_.policies.find(rollout.policy);
    return policy != nullptr && owns_key(*policy, rollout_key_of(rollout));
  }

  // Shows what a return to the profile before would do. Empty: none is on record, or it is the template of a DaemonSet.
  Command to_earlier(const SharingRollout& rollout) const {
    if (is_of_template(rollout)) return {};
    const bool has_text = is_inline(rollout) ? !inline_text_before(world_, rollout).empty()
                                             : has_earlier_text(world_, index_, rollout.config_map, rollout.key);
    if (!has_text) return {};
    return {fmt::format("gpu-sharing-operator rollout undo {} --dry-run", rollout.meta.name), "to go back"};
  }

  // `rollout undo` where it has a profile to return to; else the place where the profile is corrected.
  Command way_back(const SharingRollout& rollout) const {
    if (Command back = to_earlier(rollout); !back.empty()) return back;
    if (is_inline(rollout))
      return {fmt::format("gpu-sharing-operator rollout undo {}", rollout.meta.name),
              "to return its nodes to what they ran before this policy's profile", Command::Does::changes};
    return edit_config_map_command(
        config_map_key(rollout.config_map),
        fmt::format("to correct key {}: no earlier profile of it is on record", rollout.key));
  }

  SlotHold hold_of(const std::string& name) const { return slot_hold(world_, index_, name); }

  // The nodes that hold the slots that any rollout of the policy waits for.
  Names holders_for(std::string_view policy) const {
    std::set<std::string> names;
    for (const auto& [key, rollout] : index_.profile_rollouts)
      if (key.policy == policy && index_.record) names.merge(holders_of_awaited_slots(pass_.pass(), key, rollout));
    return {names.begin(), names.end()};
  }

  // "kubectl get nodes a01 a02  # COMMENT; and 3 more": the first few nodes.
  void add_for_first(std::string_view command, const Names& nodes, std::string_view comment) {
    if (nodes.empty()) return;
    const std::size_t shown = std::min(nodes.size(), kMostNames);
    const std::string more = shown < nodes.size() ? fmt::format("; and {} more", nodes.size() - shown) : std::string();
    add({fmt::format("{} {}", command, fmt::join(nodes | std::views::take(shown), " ")),
         fmt::format("{}{}", comment, more)});
  }

  // For whoever keeps holders of the slots out of service. Nothing about a node that the operator changes: its slot is
  // free when its change ends.
  void add_out_of_service(const Names& holders) {
    std::map<SlotHold, Names> by_hold;
    for (const std::string& name : holders) by_hold[hold_of(name)].push_back(name);
    const Names& cordoned = by_hold[SlotHold::cordoned];
    add_for_first("kubectl get nodes", cordoned,
                  fmt::format("cordoned by somebody: whoever did can return {} with kubectl uncordon",
                              cordoned.size() == 1 ? "it" : "them"));
    const Names& not_ready = by_hold[SlotHold::not_ready];
    add_for_first("kubectl describe nodes", not_ready,
                  not_ready.size() == 1 ? "NotReady: it holds a slot until it is Ready"
                                        : "NotReady: they hold slots until they are Ready");
    for (const SlotHold hold : {SlotHold::unreadable, SlotHold::cordoned_by_operator, SlotHold::no_gpus}) {
      for (const std::string& name : by_hold[hold] | std::views::take(kMostNames)) {
        Command command = explain_command(name);
        command.comment = fmt::format("it holds a slot: {}", describe(hold));
        add(std::move(command));
      }
    }
  }

  // The policies of other rollouts whose nodes hold the slots.
  void add_other_rollouts(const Names& holders, std::string_view policy) {
    std::map<std::string, Names> by_policy;
    for (const std::string& name : holders) {
      const NodeAssessment* a = index_.find(name);
      const SlotHold hold = hold_of(name);
      const bool by_rollout = hold == SlotHold::in_change || hold == SlotHold::failed || hold == SlotHold::none;
      if (a != nullptr && by_rollout && !a->policy.empty() && a->policy != policy)
        by_policy[std::string(a->policy.view())].push_back(name);
    }
    for (const auto& [other, nodes] : by_policy)
      add({fmt::format("gpu-sharing-operator rollout status policy/{}", other),
           fmt::format("{} {} the slots", first_names(nodes), nodes.size() == 1 ? "holds" : "hold"),
           Command::Does::watches});
  }

  ReadingPass& pass_;
  const World& world_;
  const Index& index_;
  std::vector<Command> out_;
};

// "3 nodes run v1-2, 8 nodes run v1-1": of the policy's nodes, the most first. Empty: all of them run the same.
std::string loaded_revisions_text(const ReadingPass& pass, std::string_view policy) {
  const auto running =
      running_revisions(pass.world(), pass.index(), [&](const RolloutKey& key) { return key.policy == policy; });
  if (running.size() < 2) return {};
  std::string out;
  for (const auto& [revision, count] : running)
    out += fmt::format("{}{} {} {}", out.empty() ? "" : ", ", counted(count, "node"), count == 1 ? "runs" : "run",
                       revision);
  return out;
}

std::vector<Command> way_out(ReadingPass& pass, const RolloutReport& report) {
  const RolloutFacts& facts = report.facts;
  const bool is_stopped = report.stop.is_set();
  if (is_stopped && report.stop.resume.empty()) return {};  // A retry is requested: what else is known ends.
  Ways ways(pass);
  Command raise;
  if (is_stopped) {
    // What the status says of the time before the stop is not what ends it.
    ways.add(with_revision(*facts.rollout, report.stop.resume));
  } else {
    ways.end_stop(facts);
    raise = ways.free_slots(ways.holders_for(facts), facts.ready, facts.rollout->policy, report.steps);
  }
  std::vector<RolloutFacts::NodeRow> nodes = facts.nodes;
  for (const NodeStep& step : report.steps)
    if (std::ranges::find(nodes, step.node, &RolloutFacts::NodeRow::name) == nodes.end())
      nodes.push_back({step.node, {}, {}});
  ways.look_at_each(nodes);
  if (!is_stopped && facts.advances()) {
    ways.free_busy_nodes(facts);
    ways.before_failures(facts, report.steps);
  }
  ways.after_stop_by_person(*facts.rollout, is_stopped ? report.stop.phase : facts.shown_phase());
  ways.after_failures(facts);
  ways.add(std::move(raise));
  return ways.take();
}

}  // namespace

void add_way_out(ReadingPass& pass, RolloutReport& report) {
  if (report.replaced_by.empty()) report.next = way_out(pass, report);
  Names held;
  for (const RolloutFacts::NodeRow& row : report.facts.nodes)
    if (row.why.code == kHeld) held.push_back(row.name);
  report.held = hold_texts(pass.world(), held);
}

void add_way_out(ReadingPass& pass, LeftFailed& failed, bool retry) {
  Ways ways(pass);
  ways.look_at_each(failed.nodes);
  if (retry) ways.add(ways.retry(failed.policy));
  failed.next = ways.take();
}

void add_way_out(ReadingPass& pass, PolicyWait& wait) {
  Ways ways(pass);
  ways.end_wait(wait);
  if (wait.why.code == reason_of(Gate::aborted)) {
    wait.runs = loaded_revisions_text(pass, wait.policy);
    ways.after_aborts(wait.policy);
  }
  wait.next = ways.take();
  if (wait.why.code == kHeld) wait.held = hold_texts(pass.world(), wait.nodes);
  if (wait.nodes.empty())
    wait.steps = steps_to(pass, wait.policy, {}, kMostListedSteps);  // Else it is about those alone.
}

}  // namespace gso
