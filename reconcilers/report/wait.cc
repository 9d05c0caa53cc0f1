// `rollout status --wait`: whether what a script waits for has happened, by the nodes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "reconcilers/explain/commands.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/report/report.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {
namespace {

using Is = WaitState::Is;

std::string with_reason(const RolloutFacts& facts) {
  return fmt::format(
      "rollout {} is {}{}", facts.rollout->meta.name, facts.shown_phase(),
      facts.ready.message.empty() ? std::string() : fmt::format(" ({}): {}", facts.ready.code, facts.ready.message));
}

// Nodes by what they mean for the wait.
struct AwaitedNodes {
  std::set<std::string> moving, failed, blocked, held;
  std::set<std::string> drifting;    // Have loaded their target, and do not show it: the operator repairs them.
  std::set<std::string> left_alone;  // The same, and the operator repairs them only on request.
  bool held_for_a_while = false;  // One of `held` is in something that ends by itself: a driver upgrade, a MIG change.
  std::int64_t total = 0;

  [[nodiscard]] std::size_t not_up_to_date() const {
    return moving.size() + failed.size() + blocked.size() + drifting.size();
  }
};

void add_node(const std::string& name, const NodeAssessment& a, AwaitedNodes& out) {
  ++out.total;
  const Phase phase = phase_of(a);
  const bool drifting = phase == Phase::up_to_date && drifts(a);
  if (phase == Phase::unmanaged || (phase == Phase::up_to_date && !drifting)) return;
  if (phase == Phase::held || (drifting && !a.holder.empty())) {
    out.held.insert(name);
    out.held_for_a_while = out.held_for_a_while || a.holder == kDriverUpgrade || a.holder == kMigChange ||
                           a.holder == kStandaloneMpsChange;
  } else if (drifting) {
    (baseline_excuse(a).empty() ? out.drifting : out.left_alone).insert(name);
  } else {
    std::set<std::string>& others = phase == Phase::failed    ? out.failed
                                    : phase == Phase::blocked ? out.blocked
                                                              : out.moving;
    others.insert(name);
  }
}

// `fits`: of an assessment.
template <class Fits>
AwaitedNodes nodes_of(const ReadingPass& pass, Fits fits) {
  AwaitedNodes out;
  for (const auto& [key, node] : pass.world().nodes.all()) {
    const NodeAssessment* a = pass.index().find(key.name);
    if (a != nullptr && fits(*a)) add_node(key.name, *a, out);
  }
  return out;
}

AwaitedNodes nodes_of_rollout(const ReadingPass& pass, const SharingRollout& rollout) {
  const RolloutKey key = rollout_key_of(rollout);
  return nodes_of(pass, [&](const NodeAssessment& a) { return pass.index().is_of(a, key); });
}

std::string listed(const std::set<std::string>& nodes) {
  return first_names({nodes.begin(), nodes.end()});
}

// "4 of 12 nodes are not up to date: a01, a02, a03; failed: a04"
std::string not_up_to_date(const AwaitedNodes& nodes) {
  std::vector<std::string> parts;
  if (!nodes.moving.empty()) parts.push_back(listed(nodes.moving));
  for (const auto& [what, names] : {std::pair("failed", &nodes.failed), std::pair("blocked", &nodes.blocked),
                                    std::pair("drifting", &nodes.drifting)}) {
    if (!names->empty()) parts.push_back(fmt::format("{}: {}", what, listed(*names)));
  }
  return fmt::format("{} of {} nodes are not up to date: {}", nodes.not_up_to_date(), nodes.total,
                     fmt::join(parts, "; "));
}

// "; a01 drifts, and the operator repairs that only on request": a wait does not last for such nodes.
std::string left_alone_text(const AwaitedNodes& nodes) {
  return nodes.left_alone.empty()
             ? std::string()
             : fmt::format("; {} {}, and the operator repairs that only on request", listed(nodes.left_alone),
                           nodes.left_alone.size() == 1 ? "drifts" : "drift");
}

// "10 of 11 nodes are up to date; t4-01 is held (annotation gpusharing.dev/hold is set)"
std::string all_done(const ReadingPass& pass, const AwaitedNodes& nodes) {
  std::string held;
  if (!nodes.held.empty()) {
    const std::string& first = *nodes.held.begin();
    const Node* node = pass.world().nodes.find(first);
    const NodeAssessment& a = *pass.index().find(first);
    const bool one = nodes.held.size() == 1;
    held = fmt::format("; {} {} held ({}{})", listed(nodes.held), one ? "is" : "are", one ? "" : first + ": ",
                       node == nullptr || a.holder.empty() ? a.obstacle.message : describe_holder(a.holder, *node));
  }
  return fmt::format("{} of {} nodes are up to date{}{}",
                     nodes.total - std::ssize(nodes.held) - std::ssize(nodes.left_alone), nodes.total, held,
                     left_alone_text(nodes));
}

// The rollout is not Completed because of nodes that somebody holds until they decide otherwise, and of no others.
bool waits_for_holders_alone(const ReadingPass& pass, const SharingRollout& rollout, const AwaitedNodes& nodes) {
  return present_rollout(rollout, pass.index()) != nullptr && !nodes.held.empty() && !nodes.held_for_a_while &&
         nodes.not_up_to_date() == 0;
}

// What stops the rollout until a person acts; empty: nothing, or a retry of it is requested.
std::string stop_text(ReadingPass& pass, const RolloutFacts& facts) {
  if (facts.is_stopped() && !is_retried(pass, facts)) return with_reason(facts);
  const std::string failures = failures_behind(pass, facts);
  return failures.empty() ? std::string() : fmt::format("{}; {}: {}", with_reason(facts), kMaxFailures, failures);
}

// Since it was Completed, its nodes can drift, be in the change that repairs that, and fail in it.
WaitState state_of_completed(const ReadingPass& pass, const SharingRollout& rollout) {
  const std::string completed = fmt::format("rollout {} is Completed", rollout.meta.name);
  if (present_rollout(rollout, pass.index()) == nullptr) return {Is::complete, completed};
  AwaitedNodes nodes = nodes_of_rollout(pass, rollout);
  // Others wait for a change of their own, and not for the end of this rollout.
  std::erase_if(nodes.moving, [&](const std::string& name) { return !pass.index().find(name)->in_change(); });
  nodes.blocked.clear();
  const std::string now = nodes.not_up_to_date() == 0 ? "" : fmt::format("; now {}", not_up_to_date(nodes));
  if (!nodes.moving.empty()) return {Is::waiting, completed + now};
  // Nobody tries these again by themselves.
  if (!nodes.failed.empty()) return {Is::stopped, completed + now};
  if (!nodes.drifting.empty()) return {Is::waiting, completed + now};
  return {Is::complete, completed + left_alone_text(nodes)};
}

WaitState state_of_rollout(ReadingPass& pass, const std::string& name) {
  const SharingRollout* rollout = pass.world().rollouts.find(name);
  if (rollout == nullptr) return {Is::stopped, fmt::format("rollout {} no longer exists", name)};
  const RolloutFacts facts = facts_of(*rollout);
  if (facts.phase == "Completed") return state_of_completed(pass, *rollout);
  if (facts.finished()) return {Is::stopped, with_reason(facts)};
  if (std::string stop = stop_text(pass, facts); !stop.empty()) return {Is::stopped, std::move(stop)};
  const AwaitedNodes nodes = nodes_of_rollout(pass, *rollout);
  if (waits_for_holders_alone(pass, *rollout, nodes))
    return {Is::complete, fmt::format("rollout {}: {}", name, all_done(pass, nodes))};
  return {Is::waiting, with_reason(facts) + (nodes.not_up_to_date() == 0 ? "" : "; " + not_up_to_date(nodes))};
}

// "a profile is invalid: node a01: …", of the first such node; empty: none is.
std::string invalid_text(const ReadingPass& pass, const AwaitedNodes& nodes) {
  for (const std::string& name : nodes.blocked) {
    const NodeAssessment& a = *pass.index().find(name);
    if (a.obstacle.code == kConfigInvalid)
      return fmt::format("a profile is invalid: node {}: {}", name, a.obstacle.message);
  }
  return {};
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
  for (const RolloutView* rollout : pass.waiting_rollouts(policy)) {
    const GateState ended = ended_by(*rollout);
    if (ended.is_open()) continue;
    return fmt::format("the rollout of key {} under policy {} is stopped ({}): {}", rollout->key.key,
                       rollout->key.policy, ended.reason(), ended.message);
  }
  return {};
}

WaitState wait_state(ReadingPass& pass, const std::string& name) {
  const std::optional<std::string> policy = policy_of(name);
  if (!name.empty() && !policy) return state_of_rollout(pass, name);
  std::vector<std::string> unfinished;
  for (const RolloutFacts& facts : all_rollouts(pass.world())) {
    if (!is_named(facts, name) || facts.finished()) continue;
    if (std::string stop = stop_text(pass, facts); !stop.empty()) return {Is::stopped, std::move(stop)};
    const SharingRollout& rollout = *facts.rollout;
    if (!waits_for_holders_alone(pass, rollout, nodes_of_rollout(pass, rollout)))
      unfinished.push_back(rollout.meta.name);
  }
  if (std::string why = stopped_rollout(pass, policy); !why.empty()) return {Is::stopped, std::move(why)};
  const AwaitedNodes nodes = nodes_of(pass, [&](const NodeAssessment& a) { return !policy || a.policy == *policy; });
  if (std::string unknown = unknown_policy(pass.world(), name); nodes.total == 0 && !unknown.empty())
    return {Is::stopped, std::move(unknown)};
  if (std::string invalid = invalid_text(pass, nodes); !invalid.empty()) return {Is::stopped, std::move(invalid)};
  const std::string rollouts =
      unfinished.empty() ? "" : fmt::format("rollout {} is not Completed", first_names(unfinished));
  if (!nodes.moving.empty()) return {Is::waiting, not_up_to_date(nodes) + (rollouts.empty() ? "" : "; " + rollouts)};
  if (!unfinished.empty()) return {Is::waiting, rollouts};
  if (!nodes.failed.empty()) return {Is::stopped, fmt::format("failed: {}", listed(nodes.failed))};
  if (!nodes.blocked.empty()) return {Is::stopped, fmt::format("blocked: {}", listed(nodes.blocked))};
  if (!nodes.drifting.empty()) return {Is::waiting, not_up_to_date(nodes)};
  return {Is::complete, all_done(pass, nodes)};
}

std::vector<std::string> steps_of_waited(ReadingPass& pass, const std::string& name) {
  const std::optional<std::string> policy = policy_of(name);
  const SharingRollout* rollout = policy || name.empty() ? nullptr : pass.world().rollouts.find(name);
  std::vector<std::string> out;
  for (const auto& [governing, nodes] : pass.index().policies) {
    if (policy && governing != *policy) continue;
    if (rollout != nullptr && governing != rollout->policy) continue;
    const std::string id = rollout == nullptr ? std::string() : rollout->config_map + "/" + rollout->key;
    for (const NodeStep& step : steps_to(pass, governing, id, kMostNames - out.size()))
      out.push_back(fmt::format("node {} ({}): {}", step.node, to_string(step.phase), step.step));
  }
  return out;
}

}  // namespace gso
