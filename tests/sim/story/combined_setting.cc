#include "tests/sim/story/combined_setting.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tests/sim/fleet/kinds.h"
#include "tests/sim/story/rollouts/rollout_stories.h"

namespace gso::sim {

using nlohmann::json;
using test::Combination;

namespace {

constexpr int kDriftNodes = 4;
constexpr std::size_t kOfFleet = 34, kOfGroup = 50;  // Percent.

int absolute_budget(const Combination& what) {
  // Beside two that are NotReady, and those that have been out of service for long.
  return 1 + (what.not_ready ? 2 : 0) + (what.broken_before ? 1 : 0) + (what.cordoned_before ? 1 : 0);
}

std::size_t judged_budget(const Combination& what, std::size_t percent, std::size_t nodes) {
  return what.percent ? (percent * nodes + 99) / 100 : static_cast<std::size_t>(absolute_budget(what));
}

}  // namespace

std::vector<NodeSpec> nodes_of(const Combination& what) {
  std::vector<NodeSpec> nodes = two_models(4, 2);
  const std::vector<Gpu> two{a100(), a100()};
  if (what.broken_before) nodes.push_back({.name = kBroken, .gpus = two});
  if (what.cordoned_before) nodes.push_back({.name = kCordoned, .gpus = two});
  if (!what.old_drift) return nodes;
  for (NodeSpec& node : alike("old", kDriftNodes, {t4()})) {
    node.labels[std::string(kConfigLabel)] = "old";
    nodes.push_back(std::move(node));
  }
  return nodes;
}

OperatorSettings settings_of(const Combination& what) {
  const std::string some = std::to_string(absolute_budget(what));
  const std::string group = std::to_string(kOfGroup) + "%";
  return {{"max-unavailable", what.percent ? std::to_string(kOfFleet) + "%" : some},
          {"max-unavailable-per-group", what.percent ? group : some},
          {"cluster-max-unavailable", what.percent ? "50%" : some},
          {"canary-nodes-per-group", what.canary ? "1" : "0"},
          {"verify-timeout", k8s::format_go_duration(kPatience)},
          {"max-failures", "2"},
          {"retry-period", "5s"}};  // Of the lease: half as many renewals.
}

json tuning_of(const Combination& what) {
  json rollout;
  rollout["workloads"] = what.pdb_refuses ? "Evict" : "WaitForIdle";
  rollout["evictBarePods"] = true;
  if (what.pdb_refuses) rollout["cordon"] = true;
  rollout["idleTimeout"] = k8s::format_go_duration(kPatience);
  if (!what.window_closes) return rollout;
  json window;
  window["cron"] = "*/20 * * * *";
  window["duration"] = k8s::format_go_duration(kOpen);
  rollout["maintenanceWindows"].push_back(window);
  return rollout;
}

InvariantOptions judged_by(const Combination& what) {
  std::map<std::string, NodeBudget> groups;
  const std::vector<NodeSpec> nodes = nodes_of(what);
  for (const NodeSpec& node : nodes) {
    NodeBudget& group = groups[node.name.substr(0, node.name.find('-'))];
    group.name = "one model and profile";
    group.nodes.insert(node.name);
  }
  InvariantOptions judge{.budget = judged_budget(what, kOfFleet, nodes.size()), .evictions = what.pdb_refuses};
  for (auto& [name, group] : groups) {
    group.most = judged_budget(what, kOfGroup, group.nodes.size());
    judge.groups.push_back(std::move(group));
  }
  return judge;
}

}  // namespace gso::sim
