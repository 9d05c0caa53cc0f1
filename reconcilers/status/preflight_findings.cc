// Preflight's results as findings of the plan.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "reconcilers/checks/check.h"
#include "reconcilers/checks/object_checks.h"
#include "reconcilers/cluster/plugin_settings.h"
#include "reconcilers/fleet/pass.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/status/next_status.h"

namespace gso {

namespace {

// Maximum number of nodes that get a finding of their own, per kind.
constexpr std::size_t kMostNodes = 20;
constexpr std::size_t kNamed = 5;  // Names in a finding about many nodes.

// What was found, and the plugin of the nodes. In an order, so that equal fleets give equal plans: fleets share the
// results, which have none.
using FoundOnNodes = std::tuple<Reason, ObjectKey>;

struct NodesFound {
  Severity severity = Severity::info;
  std::size_t count = 0;           // Number of nodes,
  std::vector<std::string> nodes;  // and those that the message can name.
  std::string brief;               // Diagnostic::brief
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
void add_nodes(NodesFound& entry, const std::set<std::string>& names) {
  entry.count += names.size();
  for (const std::string& name : names | std::views::take(kMostNodes + kNamed)) entry.nodes.push_back(name);
}

// By installation and key: nodes whose labels select MPS keys that their plugin does not load.
using MpsByLabel = std::map<std::size_t, std::map<std::string, NodesFound>>;

// Which key is served is one choice for all nodes of the installation.
void report_by_label(Pass& pass, std::size_t installation, const std::map<std::string, NodesFound>& found) {
  const PluginInstallation& plugins = pass.index.discovery.installations[installation];
  const Operand* plugin = first_plugin(plugins);
  if (plugin == nullptr) return;
  std::vector<std::string> keys;
  for (const auto& [key, of_key] : found) {
    std::vector<std::string> nodes = of_key.nodes;
    std::ranges::sort(nodes);
    keys.push_back(fmt::format("{} ({})", shown_value(key), first_names(nodes, of_key.count)));
  }
  std::string text =
      one_mps_profile_text(plugins, *plugin, "selects", keys,
                           keys.size() == 1 ? std::string_view(found.begin()->first) : std::string_view());
  std::vector<std::string> breaking;  // Those that still run their key.
  for (const std::string& name : pass.index.nodes_in(Bucket::would_break)) {
    const NodeAssessment& a = *pass.index.find(name);
    if (a.installation == installation && a.would_break_by == kMpsByLabelUnsupported) breaking.push_back(name);
  }
  if (!breaking.empty())
    text += fmt::format(". Until then {} {} GPUs at the next restart of pods there", first_names(breaking),
                        breaking.size() == 1 ? "loses its" : "lose their");
  pass.finding(Severity::error, daemonset_ref(plugin->key), kMpsByLabelUnsupported, std::move(text));
}

std::map<FoundOnNodes, NodesFound> collect(Pass& pass, MpsByLabel& by_label) {
  std::map<FoundOnNodes, NodesFound> merged;
  for (const auto& [key, nodes] : pass.index.setups) {
    const auto& [answer, id, blocked] = key;
    const NodeAssessment& first = *pass.index.find(*nodes.begin());
    if (!pass.plannable(first)) continue;
    const PluginInstallation& installation = pass.index.installation_of(first);
    for (const Diagnostic& d : *answer) {
      if (!d.key.empty()) add_nodes(by_label[first.installation][d.key], nodes);
      if (!d.key.empty() || blocked == d.code || is_mid_update(pass, d.code, installation)) continue;
      std::set<std::string> left;
      // These findings are few, and are reported with the label's value if the operator must write the label.
      if (d.code == kLabelDropped) {
        std::ranges::set_difference(nodes, pass.index.nodes_in(Bucket::unwritable), std::inserter(left, left.end()));
        if (left.empty()) continue;
      }
      const std::string message = d.path.empty() ? d.message : fmt::format("{}: {}", d.path, d.message);
      NodesFound& entry = merged[{{d.code, message}, plugin_of(installation)}];
      if (entry.count == 0) entry.severity = d.severity;
      entry.brief = d.brief;
      add_nodes(entry, d.code == kLabelDropped ? left : nodes);
    }
  }
  return merged;
}

}  // namespace

void plan_preflight(Pass& pass) {
  for (const Finding& found : check_operand_setup(pass.s.world, pass.index.discovery))
    pass.finding(found.severity, found.object, found.why.code, found.why.message);
  MpsByLabel by_label;
  for (auto& [found, merged] : collect(pass, by_label)) {
    const auto& [what, plugin] = found;
    std::sort(merged.nodes.begin(), merged.nodes.end());
    const auto report = [&](const ObjectRef& object, const std::string& on) {
      pass.finding(merged.severity, object, what.code, on + what.message);
      if (!merged.brief.empty()) pass.plan.findings.back().brief = on + merged.brief;
    };
    const std::size_t each = merged.severity == Severity::info ? 0 : std::min(kMostNodes, merged.count);
    for (std::size_t i = 0; i < each; ++i) report(node_ref(merged.nodes[i]), "");
    if (const std::size_t rest = merged.count - each; rest > 0) {
      const auto first = merged.nodes.begin() + static_cast<std::ptrdiff_t>(each);
      const std::vector<std::string> named(first, first + static_cast<std::ptrdiff_t>(std::min(rest, kNamed)));
      report(daemonset_ref(plugin), fmt::format("on {} ({}{}): ", counted(rest, each > 0 ? "further node" : "node"),
                                                fmt::join(named, ", "), rest > kNamed ? ", …" : ""));
    }
  }
  for (const auto& [installation, found] : by_label) report_by_label(pass, installation, found);
}

// --- If the record cannot be read, no rollout starts; the finding, the Event and every policy's status report it.

namespace {

ObjectRef unreadable_ref(const Pass& pass) {
  return config_map_ref(pass.index.stored.problem_in());
}

std::string what_is_wrong(const Pass& pass) {
  return pass.index.record_problem + ". No rollout starts until the record is readable or removed";
}

void report(Pass& pass) {
  pass.event(unreadable_ref(pass), true, kRecordUnreadable, "Refuse", what_is_wrong(pass));
}

}  // namespace

void report_unreadable_record(Pass& pass) {
  if (pass.index.record_problem.empty()) return;
  pass.finding(Severity::error, unreadable_ref(pass), kRecordUnreadable, what_is_wrong(pass));
  // If policies are served, the Event is sent once, with the status that reports the problem.
  if (!pass.s.world.policies_served) report(pass);
}

namespace {

// Nodes that were in a change when the record was lost, of one policy: nothing is done on them either.
std::string left_mid_change(const Pass& pass, std::string_view policy) {
  std::vector<std::string> nodes;
  for (const std::string& name : pass.index.nodes_in(Bucket::unrecorded)) {  // Without a record each node is.
    const NodeAssessment& a = *pass.index.find(name);
    if (a.change && a.policy.view() == policy) nodes.push_back(name);
  }
  return nodes.empty() ? std::string() : ". Mid-change, and not continued: " + first_names(nodes);
}

// Ready and Progressing are False for that reason; the counts and the other conditions keep their last values, because
// what the fleet runs is not known. Empty: nothing must be written.
std::string status_without_record(const Pass& pass, const std::string& kind, std::string_view before,
                                  std::int64_t generation, const std::string& message) {
  Json status = parse_status(before);
  const Reason why{kRecordUnreadable, message};
  std::vector<StatusCondition> conditions{{"Ready", false, why}, {"Progressing", false, why}};
  for (const Json& known : list_at(status, "conditions")) {
    const std::string type = text_at(known, "type");
    if (type.empty() || type == "Ready" || type == "Progressing") continue;
    conditions.push_back(
        {type, text_at(known, "status") == "True", {text_at(known, "reason"), text_at(known, "message")}});
  }
  status["conditions"] = condition_list(conditions, status, generation, pass.s.now);
  status.erase("waits");
  status["reason"] = fields_of(why);
  return text_to_write(pass.s.world, kind, before, status).value_or(std::string());
}

}  // namespace

void plan_unreadable_statuses(Pass& pass) {
  // The status is kept in the same ConfigMap as the record; write nothing there until a person has repaired it.
  if (!pass.s.world.policies_served) return;
  const std::string message =
      fmt::format("ConfigMap {}: {}", k8s::to_string(pass.index.stored.problem_in()), what_is_wrong(pass));
  bool reported = false;
  for (const SharingPolicy* policy : in_order(pass.s.world.policies)) {
    std::string after = status_without_record(pass, "SharingPolicy", policy->status_json, policy->meta.generation,
                                              message + left_mid_change(pass, policy->meta.name));
    if (after.empty()) continue;
    if (!std::exchange(reported, true)) report(pass);
    pass.add(PatchStatus{policy_ref(*policy), std::move(after)}, std::string(kStatusChanged), "");
  }
  for (const SharingRollout* rollout : in_order(pass.s.world.rollouts)) {
    if (rollout->phase.empty() || has_ended(rollout->phase)) continue;
    std::string after = status_without_record(pass, "SharingRollout", rollout->status_json, rollout->meta.generation,
                                              message + left_mid_change(pass, rollout->policy));
    if (after.empty()) continue;
    pass.add(PatchStatus{rollout_ref(*rollout), std::move(after)}, std::string(kStatusChanged), "");
  }
}

}  // namespace gso
