// The planners' findings, and problems that no planner reports.
#include "reconcilers/explain/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>

#include "reconcilers/cluster/facts.h"
#include "reconcilers/cluster/nos.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/explain/switches.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/profile/profile.h"

namespace gso {
namespace {

// No planner reports an invalid profile that no node uses, although a node could be labelled with it later.
void add_unused_profiles(const World& world, const FleetIndex& index, Audit& out) {
  std::set<std::pair<std::string, std::string>> used;
  for (const std::string& name : index.node_names()) {
    const NodeAssessment* a = index.assessment(name);
    used.emplace(index.impl().installation_of(*a).id(), a->key.view());
  }
  const std::set<std::string> of_nos = keys_of_nos(world);
  std::set<ObjectKey> seen;
  for (const PluginInstallation& installation : index.installations()) {
    const ConfigMap* config_map = world.configmaps.find(installation.config_map_key());
    if (config_map == nullptr || !seen.insert(installation.config_map_key()).second) continue;
    for (const auto& [key, text] : config_map->data) {
      if (text == nullptr || used.contains({installation.id(), key}) || of_nos.contains(key)) continue;
      const ParsedProfile parsed = parse_profile(*text);
      if (parsed.valid()) continue;
      out.findings.push_back({Severity::warning,
                              {"v1", "ConfigMap", installation.ns, installation.config_map, ""},
                              std::string(kConfigInvalid),
                              fmt::format("key {} (no node runs it now): {}", key, parsed.first_error())});
    }
  }
}

void add_node(const World& world, const Node& node, const FleetIndex& index, Audit& out) {
  ++out.nodes;
  const NodeAssessment* a = index.assessment(node.meta.name);
  const ObjectRef ref{"v1", "Node", "", node.meta.name, ""};
  const ShownState shown = shown_state(world, index, node);
  if (a == nullptr && is_partitioned_by_nos(node)) {
    ++out.plugins["nos"];
    out.findings.push_back({Severity::info, ref, shown.state, shown.message});
    return;
  }
  if (a == nullptr) {
    ++out.plugins["none"];
    out.findings.push_back({Severity::warning, ref, shown.state, shown.message});
    return;
  }
  const Operand* plugin = index.impl().installation_of(*a).find(Component::plugin, node);
  ++out.plugins[plugin == nullptr ? "unknown" : plugin->version.to_string()];
  ++out.profiles[std::string(a->profile_ref.view())];
  if (shown.state == kUnproven) out.findings.push_back({Severity::warning, ref, shown.state, shown.message});
}

}  // namespace

std::int64_t Audit::count(Severity severity) const {
  return std::ranges::count_if(findings, [&](const Finding& finding) { return finding.severity == severity; });
}

Audit audit(const Snapshot& snapshot, FleetIndex& index) {
  Audit out;
  out.findings = all_findings(snapshot, index);
  for (const auto& [key, node] : snapshot.world.nodes.all()) {
    const NodeAssessment* a = index.assessment(key.name);
    if (a != nullptr || has_gpus(*node)) add_node(snapshot.world, *node, index, out);
  }
  add_unused_profiles(snapshot.world, index, out);
  std::ranges::move(ignored_switches(snapshot.world), std::back_inserter(out.findings));
  std::ranges::sort(out.findings, [](const Finding& a, const Finding& b) {
    return std::tie(a.severity, a.reason, a.object.kind, a.object.ns, a.object.name, a.message) <
           std::tie(b.severity, b.reason, b.object.kind, b.object.ns, b.object.name, b.message);
  });
  return out;
}

}  // namespace gso
