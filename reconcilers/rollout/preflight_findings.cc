// Preflight's answers as findings of the plan.
#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reconcilers/labels.h"
#include "reconcilers/preflight.h"
#include "reconcilers/rollout/pass.h"
#include "reconcilers/rollout/status.h"

namespace gso {
namespace {

constexpr std::size_t kMostNodes = 20;  // That get a finding of their own, of one kind.
constexpr std::size_t kNamed = 5;       // In a finding that is about many.

struct Told {
  Severity severity = Severity::info;
  std::string code;
  std::string message;
  ObjectKey daemonset;
  std::vector<std::string> nodes;
};

ObjectKey plugin_of(const OperandSet& set) {
  const auto plugin = std::find_if(set.operands.begin(), set.operands.end(),
                                   [](const Operand& operand) { return operand.component == Component::plugin; });
  return plugin == set.operands.end() ? ObjectKey{} : plugin->key;
}

// The GPU Operator changes its DaemonSets one after the other: until all have what the ClusterPolicy says, they differ.
bool is_half_way(Pass& pass, const std::string& code, const NodeAssessment& node) {
  constexpr Duration kPatience = std::chrono::minutes(2);
  const OperandSet& set = pass.index.set_of(node);
  if (!set.announced || (code != "GFDOtherConfig" && code != "MPSOtherConfig")) return false;
  return !pass.held_for(fmt::format("other-config/{}", set.id()), kPatience);
}

// Sorted by what is said and of which plugin, so that equal fleets give equal plans: answers are shared by fleets, and
// come in no order.
std::map<std::tuple<std::string, std::string, ObjectKey>, Told> collect(Pass& pass) {
  std::map<std::tuple<std::string, std::string, ObjectKey>, Told> told;
  for (const auto& [answer, nodes] : pass.index.setups) {
    for (const Diagnostic& d : *answer) {
      const std::string message = d.path.empty() ? d.message : fmt::format("{}: {}", d.path, d.message);
      for (const std::string& name : nodes) {
        const NodeAssessment& node = *pass.index.find(name);
        const bool said = (node.situation == Situation::blocked && node.reason == d.code) ||
                          (d.code == kLabelDropped && pass.index.unwritable.contains(name));
        if (said || !pass.plannable(node)) continue;
        const ObjectKey daemonset = plugin_of(pass.index.set_of(node));
        if (is_half_way(pass, d.code, node)) continue;
        Told& entry = told[{d.code, message, daemonset}];
        if (entry.nodes.empty()) entry = {d.severity, d.code, message, daemonset, {}};
        entry.nodes.push_back(name);
      }
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
    const std::size_t each = told.severity == Severity::info ? 0 : std::min(kMostNodes, told.nodes.size());
    for (std::size_t i = 0; i < each; ++i) {
      pass.finding(told.severity, node_ref(told.nodes[i]), told.code, told.message);
    }
    if (const std::size_t rest = told.nodes.size() - each; rest > 0) {
      const auto first = told.nodes.begin() + static_cast<std::ptrdiff_t>(each);
      const std::vector<std::string> named(first, first + static_cast<std::ptrdiff_t>(std::min(rest, kNamed)));
      pass.finding(told.severity, daemonset, told.code,
                   fmt::format("on {} {}{} ({}{}): {}", rest, each > 0 ? "further " : "", rest == 1 ? "node" : "nodes",
                               fmt::join(named, ", "), rest > kNamed ? ", …" : "", told.message));
    }
  }
}

}  // namespace gso
