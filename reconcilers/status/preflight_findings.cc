// Preflight's answers as findings of the plan.
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

#include "reconcilers/checks/preflight.h"
#include "reconcilers/fleet/pass.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/status/status.h"

namespace gso {
namespace {

constexpr std::size_t kMostNodes = 20;  // That get a finding of their own, of one kind.
constexpr std::size_t kNamed = 5;       // In a finding that is about many.

struct Told {
  Severity severity = Severity::info;
  std::string code;
  std::string message;
  ObjectKey daemonset;
  std::size_t count = 0;           // Nodes,
  std::vector<std::string> nodes;  // and those that may be named.
};

ObjectKey plugin_of(const PluginInstallation& set) {
  const auto plugin = std::find_if(set.operands.begin(), set.operands.end(),
                                   [](const Operand& operand) { return operand.component == Component::plugin; });
  return plugin == set.operands.end() ? ObjectKey{} : plugin->key;
}

// The GPU Operator changes its DaemonSets one after the other: until all have what the ClusterPolicy says, they differ.
bool is_half_way(Pass& pass, const std::string& code, const PluginInstallation& set) {
  constexpr Duration kPatience = std::chrono::minutes(2);
  if (!set.announced || (code != "GFDOtherConfig" && code != "MPSOtherConfig")) return false;
  return !pass.held_for({Timer::mixed_config, set.id(), ""}, kPatience);
}

// Adds nodes that are alike: their number, and as many names as can be told of. Never a walk over all of them.
void add_nodes(Told& entry, const std::set<std::string>& names) {
  entry.count += names.size();
  for (const std::string& name : names | std::views::take(kMostNodes + kNamed)) entry.nodes.push_back(name);
}

// Sorted by what is said and of which plugin, so that equal fleets give equal plans: answers are shared by fleets, and
// come in no order.
std::map<std::tuple<std::string, std::string, ObjectKey>, Told> collect(Pass& pass) {
  std::map<std::tuple<std::string, std::string, ObjectKey>, Told> told;
  for (const auto& [key, nodes] : pass.index.setups) {
    const auto& [answer, id, blocked] = key;
    const NodeAssessment& first = *pass.index.find(*nodes.begin());
    if (!pass.plannable(first)) continue;
    const PluginInstallation& set = pass.index.installation_of(first);
    for (const Diagnostic& d : *answer) {
      if (blocked == d.code || is_half_way(pass, d.code, set)) continue;
      std::set<std::string> left;
      if (d.code == kLabelDropped) {  // Those are few, and said with the label's value where it is ours to write.
        std::ranges::set_difference(nodes, pass.index.nodes_in(Bucket::unwritable), std::inserter(left, left.end()));
        if (left.empty()) continue;
      }
      const std::string message = d.path.empty() ? d.message : fmt::format("{}: {}", d.path, d.message);
      const ObjectKey daemonset = plugin_of(set);
      Told& entry = told[{d.code, message, daemonset}];
      if (entry.count == 0) entry = {d.severity, d.code, message, daemonset, 0, {}};
      add_nodes(entry, d.code == kLabelDropped ? left : nodes);
    }
  }
  return told;
}

}  // namespace

void plan_preflight(Pass& pass) {
  for (const Finding& found : check_operand_setup(pass.s.world, pass.index.discovery)) {
    pass.finding(found.severity, found.object, found.reason, found.message);
  }
  for (auto& [what, told] : collect(pass)) {
    std::sort(told.nodes.begin(), told.nodes.end());
    const ObjectRef daemonset{"apps/v1", "DaemonSet", told.daemonset.ns, told.daemonset.name, ""};
    const std::size_t each = told.severity == Severity::info ? 0 : std::min(kMostNodes, told.count);
    for (std::size_t i = 0; i < each; ++i) {
      pass.finding(told.severity, node_ref(told.nodes[i]), told.code, told.message);
    }
    if (const std::size_t rest = told.count - each; rest > 0) {
      const auto first = told.nodes.begin() + static_cast<std::ptrdiff_t>(each);
      const std::vector<std::string> named(first, first + static_cast<std::ptrdiff_t>(std::min(rest, kNamed)));
      pass.finding(told.severity, daemonset, told.code,
                   fmt::format("on {} {}{} ({}{}): {}", rest, each > 0 ? "further " : "", rest == 1 ? "node" : "nodes",
                               fmt::join(named, ", "), rest > kNamed ? ", …" : "", told.message));
    }
  }
}

}  // namespace gso
