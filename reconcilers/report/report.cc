// What `rollout status` and its like show, from what SharingRollouts, policies and nodes say now.
#include "reconcilers/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/explain/audit.h"
#include "reconcilers/explain/commands.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/canary.h"
#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/status/status.h"

namespace gso {

namespace {

using Rows = std::vector<RolloutFacts::NodeRow>;

// What the nodes of the rollout should run since an edit that no operator has seen: its status is about another text.
// Empty: no such edit is known.
std::string unseen_target(const ReadingPass& pass, const FleetReport& fleet, const RolloutFacts& facts) {
  const SharingRollout& rollout = *facts.rollout;
  if (fleet.has_operator || fleet.nodes_unread || !pass.index().record || facts.finished()) return {};
  const ProfileRollout* nodes = profile_rollout_of(rollout, pass.index());
  if (nodes == nullptr) return {};
  std::string target = target_of(*nodes);
  const bool waits = target == kInvalidRevision || nodes->tally.of(Phase::pending) > 0;
  return waits && target != rollout.to_revision ? target : std::string();
}

const SharingPolicy* policy_object(const ReadingPass& pass, const RolloutFacts& facts) {
  return pass.world().policies.find(facts.rollout->policy);
}

// The completion that the operator has estimated; empty: it has not, or the end is unknown.
std::string estimate_of(const ReadingPass& pass, const FleetReport& fleet, const RolloutFacts& facts) {
  const SharingPolicy* policy = policy_object(pass, facts);
  const bool ends = fleet.has_operator && policy != nullptr && waits_for_workloads(facts).empty();
  const nlohmann::json status = ends ? parse_status(policy->status_json) : nlohmann::json();
  return text_at(status, "currentRollout") == facts.rollout->meta.name ? text_at(status, "estimatedCompletion")
                                                                       : std::string();
}

// With the counts of the nodes as they are now, by which their names are shown beside it: the status can be older. As
// it is, where the rollout has ended, or its revision is not what its nodes should run.
RolloutFacts with_present_counts(RolloutFacts facts, const Index& index) {
  const ProfileRollout* nodes = facts.finished() ? nullptr : present_rollout(*facts.rollout, index);
  if (nodes == nullptr) return facts;
  const Tally& tally = nodes->tally;
  facts.total = tally.total;
  facts.updated = tally.settled;
  facts.in_progress = tally.moving();
  facts.pending = tally.of(Phase::pending);
  facts.blocked = tally.blocked();
  facts.failed = std::ssize(failed_on(index, *nodes, facts.rollout->to_revision));
  return facts;
}

// --- The rows of nodes, for people.

// Says of a failed node that maxFailures does not count it, and why. `a`: null if no plugin serves the node.
void note_uncounted(const NodeAssessment* a, RolloutFacts::NodeRow& row) {
  if (row.state != to_string(Phase::failed) || a == nullptr || a->change == nullptr || is_counted(*a->change)) return;
  row.why.message += row.why.message.empty() ? "" : "; ";
  row.why.message +=
      "not counted for maxFailures: it was out of service (cordoned, failed or without GPUs) before its change";
}

// The table names the state of a node as `status` does: a SharingRollout says Waiting of each node that waits, and
// Failed of each that failed, although something else blocks it by now: nobody tries it again as long as that lasts.
// The reason and the message of one that waits say for what.
void name_state(ReadingPass& pass, const Node& node, RolloutFacts::NodeRow& row) {
  const bool failed = row.state == to_string(Phase::failed);
  if (row.state != "Waiting" && !failed) return;
  const ShownState shown = shown_state(pass, node);
  const std::string state = shown.state.substr(0, shown.state.find('('));
  if (failed && state != to_string(Phase::blocked) && state != to_string(Phase::held)) return;
  row.state = state;
  if (!failed) return;
  if (const NodeAssessment* a = pass.index().find(row.name)) row.why.code = shown_reason(*a);
  if (shown.message.empty() || shown.message == row.why.message) return;
  row.why.message = row.why.message.empty() ? shown.message
                                            : fmt::format("{}; its change failed: {}", shown.message, row.why.message);
}

// The rows of a status with what is known of the nodes now.
Rows present_rows(ReadingPass& pass, const RolloutFacts& facts, bool has_operator) {
  const bool is_template = !daemonset_of(facts.rollout->config_map).empty();
  std::map<std::string, Phase> of_daemons;
  if (is_template) of_daemons = daemon_phases(pass.world(), pass.index(), rollout_key_of(*facts.rollout));
  Rows out = facts.nodes;
  for (RolloutFacts::NodeRow& row : out) {
    const Node* node = pass.world().nodes.find(row.name);
    const NodeAssessment* a = pass.index().find(row.name);
    // The status of a rollout names no deadline of the nodes in a change that it lists.
    if (has_operator && node != nullptr && a != nullptr) row.why.message += deadline_text(pass, *node, *a);
    note_uncounted(a, row);
    if (!is_template && node != nullptr) name_state(pass, *node, row);
    // Of the template of DaemonSets `status` has no state of a node.
    const auto phase = of_daemons.find(row.name);
    if (row.state == "Waiting" && phase != of_daemons.end()) row.state = to_string(phase->second);
  }
  return out;
}

RolloutReport report_of(ReadingPass& pass, const FleetReport& fleet, const RolloutFacts& reported) {
  RolloutReport out{.facts = fleet.nodes_unread ? reported : with_present_counts(reported, pass.index())};
  const RolloutFacts& facts = out.facts;
  const SharingRollout& rollout = *facts.rollout;
  out.estimate = estimate_of(pass, fleet, facts);
  out.steps = steps_to(pass, rollout.policy, rollout.config_map + "/" + rollout.key, kMostListedSteps);
  out.stop = recorded_stop(facts, policy_object(pass, facts));
  if (!out.stop.is_set() && is_retried(pass, facts)) out.stop.phase = "Retry requested";
  out.failures = failures_behind(pass, facts);
  if (!fleet.nodes_unread) out.since_completion = since_completion(facts, pass.index());
  out.after = came_after(all_rollouts(pass.world()), rollout);
  out.replaced_by = shown_revision(unseen_target(pass, fleet, facts));
  add_way_out(pass, out);
  out.rows = present_rows(pass, facts, fleet.has_operator);
  // What the others waited for has ended with the edit.
  if (!out.replaced_by.empty())
    std::erase_if(out.rows, [](const RolloutFacts::NodeRow& row) { return row.state != to_string(Phase::failed); });
  return out;
}

// --- What no rollout under way names.

// The node belongs to one of the rollouts: to the nodes of its policy, ConfigMap and key.
bool is_of_any(const Index& index, const NodeAssessment& a, const std::vector<RolloutReport>& rollouts) {
  return std::ranges::any_of(
      rollouts, [&](const RolloutReport& one) { return index.is_of(a, rollout_key_of(*one.facts.rollout)); });
}

// The report shows that the policy waits for that reason.
bool says_wait(const FleetReport& report, std::string_view policy, std::string_view code) {
  return std::ranges::any_of(report.waiting,
                             [&](const PolicyWait& wait) { return wait.policy == policy && wait.why.code == code; });
}

// Of all policies, or of that one.
std::vector<LeftFailed> left_failed(ReadingPass& pass, const std::optional<std::string>& policy,
                                    const FleetReport& fleet) {
  std::map<std::string, LeftFailed> by_policy;
  for (const auto& [key, rollout] : pass.index().profile_rollouts) {
    if (policy && key.policy != *policy) continue;
    for (const std::string& name : rollout.nodes(RolloutBucket::failed)) {
      const Node* node = pass.world().nodes.find(name);
      const NodeAssessment* a = pass.index().find(name);
      if (node == nullptr || a == nullptr || phase_of(*a) != Phase::failed) continue;
      if (is_of_any(pass.index(), *a, fleet.rollouts)) continue;
      LeftFailed& failed = by_policy[key.policy];
      failed.policy = key.policy;
      RolloutFacts::NodeRow& row = failed.nodes.emplace_back(name, std::string(to_string(Phase::failed)));
      row.why = {kVerificationFailed, shown_state(pass, *node).message};
      note_uncounted(a, row);
    }
  }
  std::vector<LeftFailed> out;
  for (auto& [name, failed] : by_policy) {
    const bool is_retry_named = std::ranges::any_of(fleet.waiting, [&name](const PolicyWait& wait) {
      return wait.policy == name && is_stopped(named_gate(wait.why.code));
    });
    add_way_out(pass, failed, !is_retry_named);
    out.push_back(std::move(failed));
  }
  return out;
}

// The table of a rollout among these has them as well.
void leave_out_shown(const std::vector<RolloutReport>& shown, std::vector<LeftFailed>& failed) {
  for (LeftFailed& of_policy : failed) {
    std::erase_if(of_policy.nodes, [&](const RolloutFacts::NodeRow& row) {
      return std::ranges::any_of(shown, [&](const RolloutReport& one) {
        return std::ranges::find(one.facts.nodes, row.name, &RolloutFacts::NodeRow::name) != one.facts.nodes.end();
      });
    });
  }
  std::erase_if(failed, [](const LeftFailed& of_policy) { return of_policy.nodes.empty(); });
}

// Nodes that have loaded their profile and do not show it: no rollout in progress names them. Without those that are
// held or NotReady, and without drift that the operator leaves alone.
void note_drifting(const ReadingPass& pass, const std::string& name, FleetReport& out) {
  const auto has_ended = [](const RolloutReport& one) { return one.facts.finished(); };
  if (out.nodes_unread || !std::ranges::all_of(out.rollouts, has_ended)) return;
  const std::optional<std::string> policy = policy_of(name);
  std::size_t count = 0;
  for (const std::string& node : pass.index().nodes_in(Bucket::drifting)) {
    const NodeAssessment* a = pass.index().find(node);
    const bool is_meant =
        a != nullptr && (name.empty() || (policy ? a->policy == *policy : is_of_any(pass.index(), *a, out.rollouts)));
    if (is_meant && ++count <= kMostListedSteps)
      out.notes.push_back(
          {fmt::format("node {} does not show its profile: {}", node, drift_text(*a)), explain_command(node)});
  }
  if (count > kMostListedSteps)
    out.notes.push_back(
        {counted(count - kMostListedSteps, "further node") + " drift as well", {"gpu-sharing-operator audit"}});
}

// Of ConfigMaps, and of policies without a rollout or a wait that is shown: what they say of it includes the pause.
void note_idle_pauses(const ReadingPass& pass, const std::optional<std::string>& policy, FleetReport& out) {
  for (IdlePause& pause : idle_pauses(pass.world(), pass.index())) {
    const std::string& name = pause.object.name;
    const bool of_policy = pause.object.kind != "ConfigMap";
    const bool has_rollout =
        std::ranges::any_of(out.rollouts, [&](const RolloutReport& one) { return one.facts.rollout->policy == name; });
    const bool is_said = of_policy && (has_rollout || says_wait(out, name, reason_of(Gate::paused)));
    if (is_said || (policy && !(of_policy && name == *policy))) continue;
    const std::string object =
        of_policy ? "policy " + name : "ConfigMap " + k8s::to_string(k8s::ObjectKey{pause.object.ns, name});
    out.notes.push_back({object + " " + pause.text, std::move(pause.resume)});
  }
}

// Policies without an object whose stop still applies while no node waits for its end: the next edit will.
void note_gone_policies(const ReadingPass& pass, const std::optional<std::string>& policy, FleetReport& out) {
  for (const auto& [name, held] : pass.index().held_policies) {
    const std::int64_t nodes = nodes_of_policy(pass.index(), name).total;
    if (nodes == 0 || says_wait(out, name, kPolicyGone) || (policy && *policy != name)) continue;
    const std::string stop =
        policy_is_gone(pass.world(), pass.index(), name) ? gone_policy_text(pass, name) : std::string();
    if (stop.empty()) continue;
    out.names_gone = true;
    out.notes.push_back(
        {fmt::format("policy {}: {}: edits are not rolled out to its {}", name, stop, counted(nodes, "node")),
         gone_policy_command(pass.world(), pass.index(), pass.settings(), name)});
  }
}

}  // namespace

FleetReport fleet_report(ReadingPass& pass, const std::string& name, bool has_operator) {
  const std::optional<std::string> policy = policy_of(name);
  const bool names_rollout = !name.empty() && !policy;
  FleetReport out{.has_operator = has_operator, .nodes_unread = !pass.world().unsynced_namespaces.empty()};
  std::vector<RolloutFacts> named = all_rollouts(pass.world());
  std::erase_if(named, [&](const RolloutFacts& facts) { return !is_named(facts, name); });
  std::set<std::string> busy;
  for (const RolloutFacts& facts : named) {
    if (facts.finished() && !recorded_stop(facts, policy_object(pass, facts)).is_set()) continue;
    RolloutReport& report = out.rollouts.emplace_back(report_of(pass, out, facts));
    if (report.replaced_by.empty()) busy.insert(facts.rollout->policy);
    // The wait of a policy that is gone follows its rollouts, with the command that ends it: once is enough.
    if (!names_rollout)
      report.said_by_its_policy =
          gone_policy_command(pass.world(), pass.index(), pass.settings(), facts.rollout->policy);
  }
  // A rollout that is named answers for itself.
  if (!names_rollout) {
    out.waiting = waiting_policies(pass, policy, busy, has_operator);
    for (PolicyWait& wait : out.waiting) add_way_out(pass, wait);
    out.failed = left_failed(pass, policy, out);
  }
  out.some_stopped = !out.failed.empty() && wait_state(pass, name).is == WaitState::Is::stopped;
  if (out.rollouts.empty() && !name.empty() && !named.empty())
    out.rollouts.push_back(report_of(pass, out, named.front()));  // The newest.
  leave_out_shown(out.rollouts, out.failed);
  note_drifting(pass, name, out);
  if (!names_rollout) {
    note_idle_pauses(pass, policy, out);
    note_gone_policies(pass, policy, out);
  }
  out.some_stopped =
      out.some_stopped || std::ranges::any_of(out.waiting, &PolicyWait::is_stopped) ||
      std::ranges::any_of(out.rollouts,
                          [](const RolloutReport& one) { return one.facts.is_stopped() || !one.failures.empty(); }) ||
      (!names_rollout && !stopped_rollout(pass, policy).empty());
  return out;
}

std::string why_without_nodes(const ReadingPass& pass, const std::optional<std::string>& name) {
  const SharingPolicy* policy = name ? pass.world().policies.find(*name) : nullptr;
  if (policy == nullptr || nodes_of_policy(pass.index(), *name).total > 0) return {};
  const std::string others = other_governors_text(pass.world(), pass.index(), *policy);
  return ". It governs no node: " + (others.empty() ? "it selects none" : others);
}

}  // namespace gso
