#include "controller/commands/rollout/wait.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "controller/commands/rollout/policy_waits.h"
#include "reconcilers/explain/commands.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {
namespace {

using Is = WaitState::Is;

bool is_meant(const RolloutFacts& facts, const std::string& name) {
  const std::optional<std::string> policy = policy_of(name);
  return name.empty() || (policy ? facts.rollout->policy == *policy : facts.rollout->meta.name == name);
}

std::string with_reason(const RolloutFacts& facts) {
  return fmt::format("rollout {} is {}{}", facts.rollout->meta.name, facts.shown_phase(),
                     facts.message.empty() ? std::string() : fmt::format(" ({}): {}", facts.reason, facts.message));
}

// Nodes by what they mean for the wait.
struct Nodes {
  std::set<std::string> moving, failed, blocked, held;
  std::set<std::string> drifting;    // Have loaded their target, and do not show it: the operator repairs them.
  std::set<std::string> left_alone;  // The same, and the operator repairs them only on request.
  std::string holder;                // Who holds the first of `held`, for people.
  bool held_for_a_while = false;  // One of `held` is in something that ends by itself: a driver upgrade, a MIG change.
  std::string invalid;            // The first node without a valid profile, with the reason.
  std::int64_t total = 0;
};

std::string holder_text(const World& world, const std::string& name, const NodeAssessment& a) {
  const Node* node = world.nodes.find(name);
  return node == nullptr || a.holder.empty() ? a.message : describe_holder(a.holder, *node);
}

bool ends_by_itself(std::string_view holder) {
  return holder == kDriverUpgrade || holder == kMigChange || holder == kStandaloneMpsChange;
}

void add_held(const World& world, const std::string& name, const NodeAssessment& a, Nodes& out) {
  if (out.held.empty()) out.holder = holder_text(world, name, a);
  out.held_for_a_while = out.held_for_a_while || ends_by_itself(a.holder);
  out.held.insert(name);
}

// A node that has loaded its target.
void add_loaded(const World& world, const std::string& name, const NodeAssessment& a, Nodes& out) {
  if (!drifts(a)) return;
  if (!a.holder.empty()) return add_held(world, name, a, out);
  (baseline_excuse(a).empty() ? out.drifting : out.left_alone).insert(name);
}

// `fits`: of an assessment.
template <class Fits>
Nodes nodes_of(const World& world, const FleetIndex& index, Fits fits) {
  Nodes out;
  for (const std::string& name : index.node_names()) {
    const NodeAssessment& a = *index.assessment(name);
    if (!fits(a)) continue;
    ++out.total;
    switch (phase_of(a)) {
      case Phase::unrecorded:
      case Phase::pending:
      case Phase::draining:
      case Phase::restarting:
      case Phase::verifying:
      case Phase::following_daemonset:
        out.moving.insert(name);
        break;
      case Phase::failed:
        out.failed.insert(name);
        break;
      case Phase::blocked:
        out.blocked.insert(name);
        if (a.reason == kConfigInvalid && out.invalid.empty())
          out.invalid = fmt::format("node {}: {}", name, a.message);
        break;
      case Phase::held:
        add_held(world, name, a, out);
        break;
      case Phase::up_to_date:
        add_loaded(world, name, a, out);
        break;
      case Phase::unmanaged:
        break;
    }
  }
  return out;
}

std::string listed(const std::set<std::string>& nodes) {
  return first_names({nodes.begin(), nodes.end()});
}

std::size_t count_not_up_to_date(const Nodes& nodes) {
  return nodes.moving.size() + nodes.failed.size() + nodes.blocked.size() + nodes.drifting.size();
}

// "4 of 12 nodes are not up to date: a01, a02, a03; failed: a04"
std::string not_up_to_date(const Nodes& nodes) {
  std::vector<std::string> parts;
  if (!nodes.moving.empty()) parts.push_back(listed(nodes.moving));
  if (!nodes.failed.empty()) parts.push_back("failed: " + listed(nodes.failed));
  if (!nodes.blocked.empty()) parts.push_back("blocked: " + listed(nodes.blocked));
  if (!nodes.drifting.empty()) parts.push_back("drifting: " + listed(nodes.drifting));
  return fmt::format("{} of {} nodes are not up to date: {}", count_not_up_to_date(nodes), nodes.total,
                     fmt::join(parts, "; "));
}

// "; a01 drifts, and the operator repairs that only on request": a wait does not last for such nodes.
std::string left_alone_text(const Nodes& nodes) {
  return nodes.left_alone.empty()
             ? std::string()
             : fmt::format("; {} {}, and the operator repairs that only on request", listed(nodes.left_alone),
                           nodes.left_alone.size() == 1 ? "drifts" : "drift");
}

// "10 of 11 nodes are up to date; t4-01 is held (annotation gpusharing.dev/hold is set)"
std::string all_done(const Nodes& nodes) {
  const bool one = nodes.held.size() == 1;
  const std::string held = nodes.held.empty()
                               ? std::string()
                               : fmt::format("; {} {} held ({}{})", listed(nodes.held), one ? "is" : "are",
                                             one ? "" : *nodes.held.begin() + ": ", nodes.holder);
  return fmt::format("{} of {} nodes are up to date{}{}",
                     nodes.total - std::ssize(nodes.held) - std::ssize(nodes.left_alone), nodes.total, held,
                     left_alone_text(nodes));
}

Nodes nodes_of_rollout(const World& world, const FleetIndex& index, const SharingRollout& rollout) {
  const RolloutKey key = rollout_key_of(rollout);
  return nodes_of(world, index, [&](const NodeAssessment& a) { return index.impl().is_of(a, key); });
}

// The rollout is not Completed because of nodes that somebody holds until they decide otherwise, and of no others.
bool waits_for_holders_alone(const FleetIndex& index, const SharingRollout& rollout, const Nodes& nodes) {
  return present_rollout(rollout, index.impl()) != nullptr && !nodes.held.empty() && !nodes.held_for_a_while &&
         count_not_up_to_date(nodes) == 0;
}

// What stops the rollout until a person acts; empty: nothing, or a retry of it is requested.
std::string stop_text(ReadingPass& pass, const RolloutFacts& facts) {
  if (facts.is_stopped() && !is_retried(pass, facts)) return with_reason(facts);
  const std::string failures = failures_behind(pass, facts);
  return failures.empty() ? std::string() : fmt::format("{}; {}: {}", with_reason(facts), kMaxFailures, failures);
}

// Since it was Completed, its nodes can drift, be in the change that repairs that, and fail in it.
WaitState state_of_completed(const World& world, const FleetIndex& index, const SharingRollout& rollout) {
  const std::string completed = fmt::format("rollout {} is Completed", rollout.meta.name);
  if (present_rollout(rollout, index.impl()) == nullptr) return {Is::complete, completed};
  Nodes nodes = nodes_of_rollout(world, index, rollout);
  // Others wait for a change of their own, and not for the end of this rollout.
  std::erase_if(nodes.moving, [&](const std::string& name) { return !index.assessment(name)->in_change(); });
  nodes.blocked.clear();
  const std::string now = count_not_up_to_date(nodes) == 0 ? "" : fmt::format("; now {}", not_up_to_date(nodes));
  if (!nodes.moving.empty()) return {Is::waiting, completed + now};
  // Nobody tries these again by themselves.
  if (!nodes.failed.empty()) return {Is::stopped, completed + now};
  if (!nodes.drifting.empty()) return {Is::waiting, completed + now};
  return {Is::complete, completed + left_alone_text(nodes)};
}

WaitState state_of_rollout(ReadingPass& pass, const FleetIndex& index, const std::string& name) {
  const World& world = pass.world();
  const SharingRollout* rollout = world.rollouts.find(name);
  if (rollout == nullptr) return {Is::stopped, fmt::format("rollout {} does not exist any more", name)};
  const RolloutFacts facts = facts_of(*rollout);
  if (facts.phase == "Completed") return state_of_completed(world, index, *rollout);
  if (facts.finished()) return {Is::stopped, with_reason(facts)};
  if (std::string stop = stop_text(pass, facts); !stop.empty()) return {Is::stopped, std::move(stop)};
  const Nodes nodes = nodes_of_rollout(world, index, *rollout);
  if (waits_for_holders_alone(index, *rollout, nodes))
    return {Is::complete, fmt::format("rollout {}: {}", name, all_done(nodes))};
  const bool settled = count_not_up_to_date(nodes) == 0;
  return {Is::waiting, with_reason(facts) + (settled ? "" : "; " + not_up_to_date(nodes))};
}

}  // namespace

std::string failures_behind(ReadingPass& pass, const RolloutFacts& facts) {
  const SharingRollout& rollout = *facts.rollout;
  const bool is_said = facts.finished() || facts.earlier_attempt || facts.went_wrong();
  if (is_said || !pass.index().record || is_retried(pass, facts)) return {};
  const RolloutView* view = pass.rollout(rollout_key_of(rollout));
  const bool is_current = view != nullptr && view->target == rollout.to_revision;
  return is_current ? view->too_many_failures() : std::string();
}

std::string stopped_rollout(ReadingPass& pass, const std::optional<std::string>& policy) {
  for (const auto& [key, profile_rollout] : pass.index().profile_rollouts) {
    if (profile_rollout.tally.of(Phase::pending) == 0 || (policy && key.policy != *policy)) continue;
    const RolloutView* rollout = pass.rollout(key);
    const GateState ended = rollout == nullptr ? GateState() : ended_by(*rollout);
    if (ended.is_open()) continue;
    return fmt::format("the rollout of key {} under policy {} is stopped ({}): {}", key.key, key.policy, ended.reason(),
                       ended.message);
  }
  return {};
}

WaitState wait_state(const World& world, FleetIndex& index, const PlannerSettings& settings, k8s::WallTime now,
                     const std::string& name) {
  ReadingPass pass(world, index, settings, now);
  return wait_state(pass, index, name);
}

WaitState wait_state(ReadingPass& pass, const FleetIndex& index, const std::string& name) {
  const World& world = pass.world();
  const std::optional<std::string> policy = policy_of(name);
  if (!name.empty() && !policy) return state_of_rollout(pass, index, name);
  std::vector<std::string> unfinished;
  for (const RolloutFacts& facts : all_rollouts(world)) {
    if (!is_meant(facts, name) || facts.finished()) continue;
    if (std::string stop = stop_text(pass, facts); !stop.empty()) return {Is::stopped, std::move(stop)};
    const SharingRollout& rollout = *facts.rollout;
    if (waits_for_holders_alone(index, rollout, nodes_of_rollout(world, index, rollout))) continue;
    unfinished.push_back(rollout.meta.name);
  }
  if (std::string why = stopped_rollout(pass, policy); !why.empty()) return {Is::stopped, why};
  const Nodes nodes = nodes_of(world, index, [&](const NodeAssessment& a) { return !policy || a.policy == *policy; });
  if (std::string unknown = unknown_policy(world, name); nodes.total == 0 && !unknown.empty())
    return {Is::stopped, std::move(unknown)};
  if (!nodes.invalid.empty()) return {Is::stopped, fmt::format("a profile is invalid: {}", nodes.invalid)};
  const std::string rollouts =
      unfinished.empty() ? "" : fmt::format("rollout {} is not Completed", first_names(unfinished));
  if (!nodes.moving.empty()) return {Is::waiting, not_up_to_date(nodes) + (rollouts.empty() ? "" : "; " + rollouts)};
  if (!unfinished.empty()) return {Is::waiting, rollouts};
  if (!nodes.failed.empty()) return {Is::stopped, fmt::format("failed: {}", listed(nodes.failed))};
  if (!nodes.blocked.empty()) return {Is::stopped, fmt::format("blocked: {}", listed(nodes.blocked))};
  if (!nodes.drifting.empty()) return {Is::waiting, not_up_to_date(nodes)};
  return {Is::complete, all_done(nodes)};
}

std::string waited_for(const std::string& name) {
  if (name.empty()) return "all rollouts";
  const std::optional<std::string> policy = policy_of(name);
  return policy ? "policy " + *policy : "rollout " + name;
}

std::vector<std::string> steps_of_waited(const World& world, FleetIndex& index, const PlannerSettings& settings,
                                         k8s::WallTime now, const std::string& name) {
  const std::optional<std::string> policy = policy_of(name);
  const SharingRollout* rollout = policy || name.empty() ? nullptr : world.rollouts.find(name);
  ReadingPass pass(world, index, settings, now);
  std::vector<std::string> out;
  for (const auto& [governing, nodes] : index.impl().policies) {
    if (policy && governing != *policy) continue;
    if (rollout != nullptr && governing != rollout->policy) continue;
    const std::string id = rollout == nullptr ? std::string() : rollout->config_map + "/" + rollout->key;
    for (const NodeStep& step : steps_to(pass, governing, id, kMostNames - out.size()))
      out.push_back(fmt::format("node {} ({}): {}", step.node, to_string(step.phase), step.step));
  }
  return out;
}

std::vector<std::string> progress_lines(const World& world, FleetIndex& index, const PlannerSettings& settings,
                                        k8s::WallTime now, const std::string& name) {
  constexpr std::size_t kMostSteps = 3;
  std::vector<std::string> out;
  std::set<std::string> busy;
  ReadingPass pass(world, index, settings, now);
  for (const RolloutFacts& reported : all_rollouts(world)) {
    if (!is_meant(reported, name) || reported.finished()) continue;
    const RolloutFacts facts = with_present_counts(reported, pass.index());
    const SharingRollout& rollout = *facts.rollout;
    busy.insert(rollout.policy);
    std::vector<std::string> steps;
    for (const NodeStep& step : steps_to(pass, rollout.policy, rollout.config_map + "/" + rollout.key, kMostSteps))
      steps.push_back(fmt::format("{} {}", step.node, to_string(step.phase)));
    const std::int64_t more = facts.in_progress - std::ssize(steps);
    if (!steps.empty() && more > 0) steps.push_back(fmt::format("{} more", more));
    out.push_back(fmt::format(
        "{}: {}{}: {}/{} up to date, {} in progress{}, {} pending, {} blocked, {} failed", rollout.meta.name,
        facts.shown_phase(), facts.reason.empty() ? "" : " (" + facts.reason + ")", facts.updated, facts.total,
        facts.in_progress, steps.empty() ? std::string() : fmt::format(" ({})", fmt::join(steps, ", ")), facts.pending,
        facts.blocked, facts.failed));
  }
  if (!name.empty() && !policy_of(name)) return out;
  constexpr bool kHasOperator = true;  // That none runs is a line of its own, and so are the nodes that wait.
  for (const PolicyWait& wait : waiting_policies(pass, policy_of(name), busy, kHasOperator))
    out.push_back(fmt::format("policy {} waits ({}): {}", wait.policy, wait.reason, wait.message));
  return out;
}

}  // namespace gso
