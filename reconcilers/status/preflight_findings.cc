// Preflight's results as findings of the plan.
#include <algorithm>
#include <iterator>
#include <map>
#include <ranges>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reconcilers/checks/check.h"
#include "reconcilers/checks/object_checks.h"
#include "reconcilers/fleet/pass.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/status/status.h"

namespace gso {
namespace {

// Maximum number of nodes that get a finding of their own, per kind.
constexpr std::size_t kMostNodes = 20;
constexpr std::size_t kNamed = 5;  // Names in a finding about many nodes.

struct NodeFinding {
  Severity severity = Severity::info;
  std::string code;
  std::string message;
  ObjectKey daemonset;
  std::size_t count = 0;           // Number of nodes,
  std::vector<std::string> nodes;  // and those that the message can name.
};

ObjectKey plugin_of(const PluginInstallation& installation) {
  const auto plugin = std::find_if(installation.operands.begin(), installation.operands.end(),
                                   [](const Operand& operand) { return operand.component == Component::plugin; });
  return plugin == installation.operands.end() ? ObjectKey{} : plugin->key;
}

// The GPU Operator updates its DaemonSets one after the other: until all match the ClusterPolicy, they differ.
bool is_mid_update(Pass& pass, const std::string& code, const PluginInstallation& installation) {
  constexpr Duration kPatience = std::chrono::minutes(2);
  if (!installation.announced || (code != "GFDOtherConfig" && code != "MPSOtherConfig")) return false;
  return !pass.held_for({Timer::mixed_config, installation.id(), ""}, kPatience);
}

// Adds identical nodes: their number, and enough names for the message. Never walks all of them.
void add_nodes(NodeFinding& entry, const std::set<std::string>& names) {
  entry.count += names.size();
  for (const std::string& name : names | std::views::take(kMostNodes + kNamed)) entry.nodes.push_back(name);
}

// Sorted by message and plugin, so that equal fleets give equal plans: fleets share the results, which have no order.
std::map<std::tuple<std::string, std::string, ObjectKey>, NodeFinding> collect(Pass& pass) {
  std::map<std::tuple<std::string, std::string, ObjectKey>, NodeFinding> merged;
  for (const auto& [key, nodes] : pass.index.setups) {
    const auto& [answer, id, blocked] = key;
    const NodeAssessment& first = *pass.index.find(*nodes.begin());
    if (!pass.plannable(first)) continue;
    const PluginInstallation& installation = pass.index.installation_of(first);
    for (const Diagnostic& d : *answer) {
      if (blocked == d.code || is_mid_update(pass, d.code, installation)) continue;
      std::set<std::string> left;
      // These findings are few, and are reported with the label's value if the operator must write the label.
      if (d.code == kLabelDropped) {
        std::ranges::set_difference(nodes, pass.index.nodes_in(Bucket::unwritable), std::inserter(left, left.end()));
        if (left.empty()) continue;
      }
      const std::string message = d.path.empty() ? d.message : fmt::format("{}: {}", d.path, d.message);
      const ObjectKey daemonset = plugin_of(installation);
      NodeFinding& entry = merged[{d.code, message, daemonset}];
      if (entry.count == 0) entry = {d.severity, d.code, message, daemonset, 0, {}};
      add_nodes(entry, d.code == kLabelDropped ? left : nodes);
    }
  }
  return merged;
}

}  // namespace

void plan_preflight(Pass& pass) {
  for (const Finding& found : check_operand_setup(pass.s.world, pass.index.discovery)) {
    pass.finding(found.severity, found.object, found.reason, found.message);
  }
  for (auto& [what, merged] : collect(pass)) {
    std::sort(merged.nodes.begin(), merged.nodes.end());
    const ObjectRef daemonset = daemonset_ref(merged.daemonset);
    const std::size_t each = merged.severity == Severity::info ? 0 : std::min(kMostNodes, merged.count);
    for (std::size_t i = 0; i < each; ++i) {
      pass.finding(merged.severity, node_ref(merged.nodes[i]), merged.code, merged.message);
    }
    if (const std::size_t rest = merged.count - each; rest > 0) {
      const auto first = merged.nodes.begin() + static_cast<std::ptrdiff_t>(each);
      const std::vector<std::string> named(first, first + static_cast<std::ptrdiff_t>(std::min(rest, kNamed)));
      pass.finding(merged.severity, daemonset, merged.code,
                   fmt::format("on {} ({}{}): {}", counted(rest, each > 0 ? "further node" : "node"),
                               fmt::join(named, ", "), rest > kNamed ? ", …" : "", merged.message));
    }
  }
}

}  // namespace gso
