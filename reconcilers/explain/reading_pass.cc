#include "reconcilers/explain/reading_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>
#include <variant>

#include "reconcilers/explain/commands.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/node/node_step.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/budgets.h"
#include "reconcilers/rollout/canary.h"
#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/rollout/standstill.h"

namespace gso {

namespace {

constexpr std::string_view kExplain = "explain";
// Since when the timers have run whose start is written down: soaks, and the last edit of each ConfigMap.
Timers known_timers(Snapshot snapshot, Index& index) {
  if (!index.record) return {};
  snapshot.first_look = true;
  RolloutViews views(snapshot, index);
  Pass pass(snapshot, index, kExplain, &views);
  run_soaking_timers(pass);
  Timers out = snapshot.timers;
  out.merge(pass.plan.timer_starts);
  const auto& installations = index.discovery.installations;
  for (std::size_t i = 0; i < installations.size(); ++i) {
    const ConfigMap* config_map = snapshot.world.configmaps.find(installations[i].config_map_key());
    const bool known = config_map != nullptr && config_map->data_time_known;
    out.emplace(settled_timer(pass, i), known ? config_map->data_changed : WallTime());
  }
  return out;
}

}  // namespace

ReadingPass::ReadingPass(const Snapshot& snapshot, FleetIndex& index)
    : timers_(known_timers(snapshot, index.impl())),
      snapshot_{.world = snapshot.world,
                .now = snapshot.now,
                .timers = timers_,
                .consumers = snapshot.consumers,
                .settings = snapshot.settings,
                .refused_writes = snapshot.refused_writes,
                .mono = snapshot.mono},
      views_(snapshot_, index.impl()),
      pass_(snapshot_, index.impl(), kExplain, &views_),
      steps_(pass_) {}

ReadingPass::ReadingPass(const World& world, FleetIndex& index, const PlannerSettings& settings, WallTime now)
    : ReadingPass(Snapshot{world, now, kNoTimers, kNobodyListed, settings}, index) {}

const Step* ReadingPass::step_of(const Node& node, const NodeAssessment& a) {
  const std::string& name = node.meta.name;
  if (const auto known = known_.find(name); known != known_.end()) return &known->second;
  if (steps_.is_undecided(name, a)) return nullptr;
  return &known_.emplace(name, steps_.of(node, a)).first->second;
}

const Reason* ReadingPass::stop_of(const NodeAssessment& a) {
  const RolloutView* rollout = rollout_of(a);
  return rollout != nullptr && rollout->stop() ? &*rollout->stop() : nullptr;
}

std::vector<const RolloutView*> ReadingPass::waiting_rollouts(std::optional<std::string_view> policy) {
  std::vector<const RolloutView*> out;
  if (!pass_.index.record) return out;
  for (const auto& [key, profile_rollout] : pass_.index.profile_rollouts) {
    const bool waits = profile_rollout.tally.of(Phase::pending) > 0 && (!policy || key.policy == *policy);
    if (const RolloutView* rollout = waits ? views_.find(key) : nullptr) out.push_back(rollout);
  }
  return out;
}

std::vector<Command> ReadingPass::stop_commands_of(std::string_view policy) {
  std::vector<Command> out;
  for (const RolloutView* rollout : waiting_rollouts(policy)) {
    const Command command = stop_command(*rollout);
    if (command.empty()) return {};
    if (std::ranges::find(out, command) == out.end()) out.push_back(command);
  }
  return out;
}

Reason ReadingPass::wait_of(const NodeAssessment& a) {
  const RolloutView* rollout = rollout_of(a);
  if (rollout == nullptr) return {};
  const GateState& gate = rollout->gate();
  if (std::string start = start_after_settling(*rollout); !start.empty())
    return {gate.reason(), fmt::format("{}: {}", gate.reason(), start)};
  // Whether kubelets have projected a key is known to the operator alone.
  if (gate.gate == Gate::key_not_projected || gate.gate == Gate::new_attempt) return {};
  if (!gate.is_open()) return {gate.reason(), fmt::format("{}: {}", gate.reason(), gate.message)};
  const auto& groups = rollout->waits().groups;
  const auto group = std::ranges::find(groups, a.product.view(), &GroupWait::product);
  return group == groups.end() ? Reason() : group->why;
}

std::map<std::string, std::string> ReadingPass::settling() {
  std::map<std::string, std::string> out;
  for (const RolloutView* rollout : waiting_rollouts())
    if (std::string start = start_after_settling(*rollout); !start.empty())
      out.emplace(rollout->key.policy, std::move(start));
  return out;
}

std::vector<std::string> pods_to_go(const FleetIndex::Impl& index, const Node& node, const NodeAssessment& a,
                                    bool ending) {
  std::vector<std::string> out;
  const NodePods pods = sort_pods(index.installation_of(a), index.pods_of(node.meta.name));
  for (const Component component : {Component::mps, Component::gfd, Component::plugin}) {
    const auto listed = a.change->pods.find(component);
    if (listed == a.change->pods.end()) continue;
    for (const Pod* pod : pods.of(component))
      if (listed->second.contains(pod->meta.uid) && (!ending || pod->meta.deletion_timestamp))
        out.push_back(fmt::format("{} {}", to_string(component), shown_value(pod->meta.name)));
  }
  return out;
}

namespace {

// Why the step ends the change of a node that has lost no pod; null: it does not.
const std::string* why_it_leaves(const Step& step) {
  if (step.done) return nullptr;
  for (const PlannedAction& planned : step.plan.actions) {
    const auto* patch = std::get_if<PatchNode>(&planned.action);
    if (patch == nullptr) continue;
    const auto state = patch->set.find(std::string(kStateLabel));
    const bool restores = step.row <= StepRow::c6 && state != patch->set.end() && state->second == kStateFailed;
    if (restores || patch->remove_annotations.contains(std::string(kChangeAnnotation))) return &planned.why.message;
  }
  return nullptr;
}

// What the step reports instead of acting; empty: nothing. How a daemon ended is no reason to wait.
std::string reported(const Step& step) {
  std::string out;
  if (!step.plan.actions.empty()) return out;
  for (const Finding& finding : step.plan.findings)
    if (finding.why.code != kMpsUncleanExit) out = finding.why.message;
  return out;
}

// What a Ready node waits for whose first pods have been replaced, from C7 on.
std::string replacing(const Index& index, const Node& node, const NodeAssessment& a, const Step& step) {
  const NodePods pods = sort_pods(index.installation_of(a), index.pods_of(node.meta.name));
  if (step.row == StepRow::c9) {
    const std::string next = pods_to_go(index, node, a).front();
    const bool has_problem = !a.pods_ready && !step.last_wait_for.empty();
    const std::string why = has_problem ? first_problem(pods) : step.last_wait_for;
    return why.empty() ? next + " is replaced next" : fmt::format("{}; then {} is replaced", why, next);
  }
  if (step.row == StepRow::c10) return "new profile is live; confirming";
  if (std::string why = reported(step); !why.empty()) return why;
  if (step.row == StepRow::c7)
    return "the profile changed again: new pods that might have read the former text are replaced too";
  // No row applies yet: the node waits for pods to end or to become Ready, or does not show its profile.
  if (const auto going = pods_to_go(index, node, a, true); !going.empty())
    return fmt::format("waits for {} to end", going.front());
  if (!a.pods_ready) return first_problem(pods);
  return a.matches() ? "new profile is live; confirming" : "verifying: " + shown_difference(a);
}

// Of a Ready node whose first pods, or whose label, remain (C6).
std::string draining(const Index& index, const Node& node, const NodeAssessment& a, const Step& step) {
  const std::vector<std::string> left = pods_to_go(index, node, a);
  if (!step.plan.actions.empty())
    return left.empty() ? "its label is written next" : left.front() + " is replaced next";
  if (std::string why = reported(step); !why.empty()) return why;
  return fmt::format("is being drained; then {}",
                     left.empty() ? "its label is written" : left.front() + " is replaced");
}

// One change of one node, in words. `waiting`: what the status of the rollout says about the node.
std::string step_text(const Index& index, const Node& node, const NodeAssessment& a, const Step& step,
                      const std::string& waiting) {
  if (const std::string* why = why_it_leaves(step)) return fmt::format("{}: the node leaves its change", *why);
  switch (step.row) {
    case StepRow::c1:
      return fmt::format("{}: the operator waits until this ends", describe_holder(a.holder, node));
    case StepRow::forget_cordon:
      return "someone uncordoned the node; the change continues";
    case StepRow::c2:
      return "the change has failed";
    case StepRow::c3:
    case StepRow::c4:
      return reported(step);
    default:
      break;
  }
  if (!node.ready) return std::string(kNotReadyInChangeText);
  if (step.row == StepRow::c5) return "the profile changed again: the pods to replace are listed again";
  const bool acts = step.row == StepRow::c6 && !step.plan.actions.empty();
  if (!waiting.empty() && !acts) return waiting;
  return step.row == StepRow::c6 ? draining(index, node, a, step) : replacing(index, node, a, step);
}

}  // namespace

std::string change_step(ReadingPass& pass, const Node& node, const NodeAssessment& a) {
  const Step* step = pass.step_of(node, a);
  if (step == nullptr) return "the operator decides about the node once it has read all that it needs";
  return step_text(pass.index(), node, a, *step, blocking_pods_of(pass.world(), node.meta.name)) +
         deadline_text(pass, node, a);
}

std::string deadline_text(ReadingPass& pass, const Node& node, const NodeAssessment& a) {
  constexpr Duration kUsual = std::chrono::minutes(2);
  const Step* step = a.change == nullptr || a.change->failed ? nullptr : pass.step_of(node, a);
  if (step == nullptr || step->done || !step->verifying_since || a.matches()) return {};
  const bool waits = step->row == StepRow::none || step->row == StepRow::c8 || step->row == StepRow::c9;
  if (!waits) return {};
  // Its pods serve: missing labels only make it wait, and other counts of devices can end its change as verified.
  const bool serves = node.ready && a.pods_ready;
  if (serves && (!a.labels_missing.empty() || a.verified.shortfall || a.verified.surplus)) return {};
  const Duration timeout = pass.index().policy(pass.world(), a.policy.view()).rollout.verify_timeout;
  const WallTime end = *step->verifying_since + std::chrono::ceil<WallTime::duration>(timeout);
  const bool is_late = pass.now() - *step->verifying_since >= std::min(kUsual, timeout / 2);
  if (!is_late || end <= pass.now()) return {};
  return fmt::format("; if this lasts, the change fails at {} at the latest (verifyTimeout {})", k8s::format_time(end),
                     k8s::format_go_duration(timeout));
}

std::vector<NodeStep> steps_to(ReadingPass& pass, std::string_view policy, std::string_view id, std::size_t most) {
  std::vector<NodeStep> out;
  const Index& index = pass.index();
  const auto is_of = [&](const NodeAssessment& a) {
    return a.policy == policy &&
           (id.empty() || fmt::format("{}/{}", index.installation_of(a).id(), a.key.view()) == id);
  };
  for (const Bucket bucket : {Bucket::changing, Bucket::self_loaded}) {
    const bool changes = bucket == Bucket::changing;
    for (const std::string& name : index.nodes_in(bucket)) {
      const NodeAssessment* a = index.find(name);
      const Node* node = pass.world().nodes.find(name);
      if (a == nullptr || node == nullptr || !is_of(*a) || out.size() >= most) continue;
      if (changes ? !a->change || a->change->failed : !a->loads_by_itself()) continue;
      std::string text = changes ? change_step(pass, *node, *a) : shown_state(pass, *node).message;
      out.push_back({name, phase_of(*a), std::move(text), node->ready});
    }
  }
  return out;
}

}  // namespace gso
