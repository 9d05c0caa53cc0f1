#include "controller/commands/rollout/left_failed.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "controller/commands/rollout/way_out.h"
#include "controller/commands/shared/print_line.h"
#include "reconcilers/explain/shown_state.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/rollout/failures.h"
#include "reconcilers/rollout/gates.h"

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

}  // namespace gso
