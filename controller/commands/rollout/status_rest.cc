// What `rollout status` says beside rollouts and waits: nodes that stay failed or drift, pauses that stop nothing yet,
// and the stops of policies that are gone.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <utility>

#include "controller/commands/rollout/policy_waits.h"
#include "controller/commands/rollout/verbs.h"
#include "controller/commands/rollout/view.h"
#include "controller/commands/rollout/way_out.h"
#include "controller/commands/shared/print.h"
#include "reconcilers/explain/audit.h"
#include "reconcilers/explain/commands.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/rollout/failures.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/status/status.h"

namespace gso {

using OrderedJson = nlohmann::ordered_json;

namespace {

bool names_retry(const std::string& policy, const std::vector<PolicyWait>& waiting) {
  return std::ranges::any_of(waiting, [&](const PolicyWait& wait) {
    return wait.policy == policy && (wait.reason == reason_of(Gate::max_failures) ||
                                     wait.reason == reason_of(Gate::aborted) || wait.reason == reason_of(Gate::undone));
  });
}

}  // namespace

bool is_of_any(const Index& index, const NodeAssessment& a, const std::vector<RolloutFacts>& rollouts) {
  return std::ranges::any_of(rollouts,
                             [&](const RolloutFacts& facts) { return index.is_of(a, rollout_key_of(*facts.rollout)); });
}

std::vector<LeftFailed> left_failed(ReadingPass& pass, const std::optional<std::string>& policy,
                                    const std::vector<RolloutFacts>& under_way,
                                    const std::vector<PolicyWait>& waiting) {
  std::map<std::string, LeftFailed> by_policy;
  for (const auto& [key, rollout] : pass.index().profile_rollouts) {
    if (policy && key.policy != *policy) continue;
    for (const std::string& name : rollout.nodes(RolloutBucket::failed)) {
      const Node* node = pass.world().nodes.find(name);
      const NodeAssessment* a = pass.index().find(name);
      if (node == nullptr || a == nullptr || phase_of(*a) != Phase::failed) continue;
      if (is_of_any(pass.index(), *a, under_way)) continue;
      LeftFailed& failed = by_policy[key.policy];
      failed.policy = key.policy;
      failed.nodes.push_back({name, std::string(to_string(Phase::failed)), std::string(kVerificationFailed),
                              shown_state(pass, *node).message});
    }
  }
  std::vector<LeftFailed> out;
  for (auto& [name, failed] : by_policy) {
    failed.next = way_out_of_failed(pass, name, failed.nodes, !names_retry(name, waiting));
    note_uncounted(pass.index(), failed.nodes);
    out.push_back(std::move(failed));
  }
  return out;
}

void leave_out_shown(std::vector<LeftFailed>& failed, const std::vector<RolloutFacts>& shown) {
  for (LeftFailed& of_policy : failed) {
    std::erase_if(of_policy.nodes, [&](const RolloutFacts::NodeRow& row) {
      return std::ranges::any_of(shown, [&](const RolloutFacts& facts) {
        return std::ranges::find(facts.nodes, row.name, &RolloutFacts::NodeRow::name) != facts.nodes.end();
      });
    });
  }
  std::erase_if(failed, [](const LeftFailed& of_policy) { return of_policy.nodes.empty(); });
}

void note_uncounted(const Index& index, std::vector<RolloutFacts::NodeRow>& nodes) {
  for (RolloutFacts::NodeRow& row : nodes) {
    const NodeAssessment* a = index.find(row.name);
    if (row.state != to_string(Phase::failed) || a == nullptr || a->change == nullptr || is_counted(*a->change))
      continue;
    row.message += row.message.empty() ? "" : "; ";
    row.message +=
        "not counted for maxFailures: it was out of service (cordoned, failed or without GPUs) before its change";
  }
}

void print_left_failed(const LeftFailed& failed, std::ostream& out) {
  const std::size_t count = failed.nodes.size();
  print_line(out, "policy {}: {} failed, and {} not tried again", failed.policy, counted(count, "node"),
             count == 1 ? "is" : "are");
  std::vector<RolloutFacts::NodeRow> rows = failed.nodes;
  if (rows.size() > kMostListedSteps) rows.resize(kMostListedSteps);
  print_node_table(rows, {}, out);
  if (count > kMostListedSteps) print_line(out, "  and {} more", count - kMostListedSteps);
  for (const std::string& command : failed.next) print_line(out, "  next: {}", command);
}

OrderedJson left_failed_json(const LeftFailed& failed) {
  OrderedJson nodes = OrderedJson::array();
  for (const RolloutFacts::NodeRow& row : failed.nodes) nodes.push_back({{"name", row.name}, {"message", row.message}});
  return {{"policy", failed.policy}, {"nodes", std::move(nodes)}, {"next", failed.next}};
}

bool has_unread_nodes(const RolloutCall& call) {
  return !call.world.unsynced_namespaces.empty();
}

namespace {

// Nodes that have loaded their profile and do not show it, of the rollouts, or of the policy or all: no rollout in
// progress names them. Without those that are held or NotReady, and without drift that the operator leaves alone.
std::vector<std::string> drifting_nodes(const RolloutCall& call, const ReadingPass& pass,
                                        const std::vector<RolloutFacts>& shown) {
  const std::optional<std::string> policy = policy_of(call.options.name);
  const bool names_rollout = !call.options.name.empty() && !policy;
  std::vector<std::string> out;
  for (const std::string& name : pass.index().nodes_in(Bucket::drifting)) {
    const NodeAssessment* a = pass.index().find(name);
    if (a == nullptr || (policy && a->policy.view() != *policy) ||
        (names_rollout && !is_of_any(pass.index(), *a, shown)))
      continue;
    out.push_back(name);
  }
  return out;
}

}  // namespace

void print_idle_pauses(const RolloutCall& call, const FleetIndex& index, const std::vector<RolloutFacts>& shown,
                       const std::vector<PolicyWait>& waiting) {
  const std::optional<std::string> policy = policy_of(call.options.name);
  if (!call.options.name.empty() && !policy) return;
  for (const IdlePause& pause : idle_pauses(call.world, index.impl())) {
    const std::string& name = pause.object.name;
    if (pause.object.kind == "ConfigMap") {
      if (policy) continue;
      print_line(*call.out, "ConfigMap {} {}", k8s::to_string(k8s::ObjectKey{pause.object.ns, name}), pause.text);
      print_line(*call.out, "  next: {}", pause.resume.text());
      continue;
    }
    const bool has_rollout =
        std::ranges::any_of(shown, [&](const RolloutFacts& facts) { return facts.rollout->policy == name; });
    const bool is_said = std::ranges::any_of(
        waiting, [&](const PolicyWait& wait) { return wait.policy == name && wait.reason == reason_of(Gate::paused); });
    if (has_rollout || is_said || (policy && name != *policy)) continue;
    print_line(*call.out, "policy {} {}", name, pause.text);
    print_line(*call.out, "  next: {}", pause.resume.text());
  }
}

std::string why_without_nodes(const ReadingPass& pass, const std::optional<std::string>& name) {
  const SharingPolicy* policy = name ? pass.world().policies.find(*name) : nullptr;
  if (policy == nullptr) return {};
  const auto nodes = pass.index().policies.find(*name);
  if (nodes != pass.index().policies.end() && nodes->second.total > 0) return {};
  const std::string others = other_governors_text(pass.world(), pass.index(), *policy);
  return ". It governs no node: " + (others.empty() ? "it selects none" : others);
}

std::vector<std::string> idle_gone_policies(const RolloutCall& call, const ReadingPass& pass,
                                            const std::vector<PolicyWait>& waiting) {
  const std::optional<std::string> policy = policy_of(call.options.name);
  std::vector<std::string> out;
  if (!call.options.name.empty() && !policy) return out;
  for (const auto& [name, held] : pass.index().held_policies) {
    const auto nodes = pass.index().policies.find(name);
    const bool governs = nodes != pass.index().policies.end() && nodes->second.total > 0;
    const bool is_said = std::ranges::any_of(
        waiting, [&](const PolicyWait& wait) { return wait.policy == name && wait.reason == kPolicyGone; });
    const bool is_meant = !policy || *policy == name;
    if (governs && !is_said && is_meant && policy_is_gone(pass.world(), pass.index(), name) &&
        !gone_policy_text(pass, name).empty())
      out.push_back(name);
  }
  return out;
}

void print_idle_gone(const RolloutCall& call, const ReadingPass& pass, const std::vector<std::string>& gone) {
  for (const std::string& policy : gone) {
    print_line(*call.out, "policy {}: {}: edits are not rolled out to its {}", policy, gone_policy_text(pass, policy),
               counted(pass.index().policies.at(policy).total, "node"));
    print_line(*call.out, "  next: {}",
               gone_policy_command(pass.world(), pass.index(), pass.settings(), policy).text());
  }
}

void print_drifting(const RolloutCall& call, const ReadingPass& pass, const std::vector<RolloutFacts>& shown) {
  if (has_unread_nodes(call) || !std::ranges::all_of(shown, &RolloutFacts::finished)) return;
  const std::vector<std::string> nodes = drifting_nodes(call, pass, shown);
  for (std::size_t i = 0; i < std::min(nodes.size(), kMostListedSteps); ++i) {
    print_line(*call.out, "node {} does not show its profile: {}", nodes[i], drift_text(*pass.index().find(nodes[i])));
    print_line(*call.out, "  next: gpu-sharing-operator explain {}", nodes[i]);
  }
  if (nodes.size() > kMostListedSteps)
    print_line(*call.out, "{} drift as well\n  next: gpu-sharing-operator audit",
               counted(nodes.size() - kMostListedSteps, "further node"));
}

}  // namespace gso
