// Findings as problems: equal ones merged, ranked by the GPUs that nobody can use because of them.
#include "reconcilers/explain/audit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <tuple>
#include <utility>

#include "reconcilers/checks/check.h"
#include "reconcilers/cluster/facts.h"
#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/partitioning/node_slices.h"
#include "reconcilers/reasons/names.h"

namespace gso {

namespace {

constexpr Component kComponents[] = {Component::plugin, Component::gfd, Component::mps};

// GPUs of a node that neither GFD nor the record counts: what its plugin serves, with the replicas of one GPU counted
// once; 0: unknown, because the profile that the plugin runs is not known. `older_text`: it runs one from before an
// edit.
std::int64_t served_gpus(const FleetIndex::Impl& index, const Node& node, const NodeAssessment* a, bool older_text) {
  if (a == nullptr || index.installation_of(*a).config_map.empty()) return amount_of(node.capacity, kGpuResource);
  std::int64_t gpus = 0;
  if (a->expectation != nullptr)
    for (const auto& [resource, replicas] : a->expectation->replicas)
      gpus += a->expectation->capacity.at(resource) / replicas;
  if (gpus > 0) return gpus;
  if (a->measured_gpus > 0) return a->measured_gpus;
  if (a->expectation != nullptr && a->loaded.revision == a->target && !older_text)
    for (const auto& [resource, replicas] : a->expectation->divisible)
      gpus += amount_of(node.capacity, resource) / replicas;
  return gpus;
}

// GPUs that somebody has stated in the annotation gpusharing.dev/devices, or that the operator has recorded for the
// machine; 0: neither.
std::int64_t stated_gpus(const FleetIndex::Impl& index, const Node& node) {
  if (const std::optional<std::vector<Device>> devices = facts_of(node).devices; devices && !devices->empty())
    return std::ssize(*devices);
  const MachineRecord* recorded = index.record ? index.record->machines.find(machine_id(node.meta.uid.str())) : nullptr;
  return recorded == nullptr ? 0 : recorded->devices;
}

// The share of what the profile makes of the GPUs that is not allocatable, of `total` GPUs, rounded up. What a node
// with another text than its target should serve is what its kubelet counts: the target's numbers come later.
std::int64_t lost_of(const Node& node, const NodeAssessment& a, std::int64_t total, bool older_text) {
  std::int64_t expected = 0;
  std::int64_t offered = 0;
  if (older_text || a.loaded.revision != a.target) {
    for (const auto& [resource, count] : node.capacity) {
      expected += count;
      offered += std::min(count, amount_of(node.allocatable, resource.view()));
    }
  } else if (a.expectation != nullptr) {
    for (const auto& [resource, count] : a.expectation->capacity) {
      expected += count;
      offered += std::min(count, amount_of(node.allocatable, resource));
    }
  }
  if (expected == 0) return serves_gpus(node) ? 0 : total;
  return (total * (expected - offered) + expected - 1) / expected;
}

// What is between a node and its GPUs, as the finding names it -> such nodes, each with the GPUs that it loses.
using ServedNodes = std::map<std::string, std::map<std::string, std::int64_t>>;

std::string served_by(std::string_view kind, const ObjectKey& object, std::string_view key = {}) {
  return fmt::format("{} {} {}", kind, k8s::to_string(object), key);
}

ServedNodes served_nodes(const FleetIndex::Impl& index, const GpusByNode& gpus) {
  ServedNodes out;
  for (const auto& [name, node] : gpus) {
    if (node.assessment == nullptr || node.of_its_change || node.lost == 0) continue;
    const NodeAssessment& a = *node.assessment;
    const PluginInstallation& installation = index.installation_of(a);
    const ObjectKey config_map = installation.config_map_key();
    std::set<std::string> by{served_by("SharingPolicy", {"", std::string(a.policy.view())}),
                             served_by("ConfigMap", config_map), served_by("ConfigMap", config_map, a.key.view())};
    for (const Component component : kComponents)
      if (const Operand* operand = installation.find(component, *node.node))
        by.insert(served_by("DaemonSet", operand->key));
    for (const std::string& one : by) out[one].emplace(name, node.lost);
  }
  return out;
}

// By node: the GPUs that no pod can get because of what the finding is about.
std::map<std::string, std::int64_t> lost_by(const ServedNodes& served, const GpusByNode& gpus, const Finding& finding) {
  // What pods request is more than the key ever offers.
  if (finding.why.code == kReplicasBelowUse) return {};
  if (finding.object.kind != "Node") {
    const std::string_view key = finding.object.kind == "ConfigMap" ? std::string_view(finding.key) : "";
    const auto nodes = served.find(served_by(finding.object.kind, {finding.object.ns, finding.object.name}, key));
    return nodes == served.end() ? std::map<std::string, std::int64_t>() : nodes->second;
  }
  const auto at = gpus.find(finding.object.name);
  const std::int64_t lost = at == gpus.end()                ? 0
                            : finding.why.code == kCordoned ? at->second.cordoned
                                                            : at->second.lost;
  return lost == 0 ? std::map<std::string, std::int64_t>() : std::map<std::string, std::int64_t>{{at->first, lost}};
}

// Of a pod that does not serve: "is not Ready: CrashLoopBackOff: no NVML", "is Running, not Ready".
std::string unready_state_of(const Pod& pod) {
  for (const ContainerStatus* container : pod.all_containers()) {
    if (container->waiting_reason.empty()) continue;
    const std::string_view said = container->last_message();
    return fmt::format("is not Ready: {}{}{}", shown_value(container->waiting_reason.view()), said.empty() ? "" : ": ",
                       shown_value(said));
  }
  return fmt::format("is {}, not Ready", pod.phase.empty() ? "Pending" : shown_value(pod.phase.view()));
}

// Of several findings about one node the one that has its GPUs and its pods: the most severe, and among equal ones that
// of the outage itself. Those of cordons have their own.
std::map<std::string_view, const Finding*> first_of_nodes(const std::vector<Finding>& findings) {
  static constexpr std::array kOutages{kVerificationFailed, kNoneAllocatable, kNodeNotReady, kLeftMidChange,
                                       kHeldMidChange,      kInChange,        kDrift,        kPreexistingDrift};
  const auto is_outage = [](const Finding& finding) {
    return std::ranges::find(kOutages, finding.why.code) != kOutages.end();
  };
  std::map<std::string_view, const Finding*> out;
  for (const Finding& finding : findings) {
    const bool counts = finding.severity != Severity::info || finding.why.code == kInChange;
    if (finding.object.kind != "Node" || finding.why.code == kCordoned || !counts) continue;
    const auto [known, is_new] = out.emplace(finding.object.name, &finding);
    const Finding& other = *known->second;
    if (!is_new && finding.severity == other.severity && is_outage(finding) && !is_outage(other))
      known->second = &finding;
  }
  return out;
}

}  // namespace

std::int64_t uncut_gpus(const Node& node) {
  const auto is_uncut = [](const GpuBar& gpu) { return gpu.slices.used.empty() && gpu.slices.free.empty(); };
  return node.ready ? std::ranges::count_if(slice_bars(node), is_uncut) : 0;
}

bool offers_gpus(const Node& node) {
  const std::int64_t uncut = uncut_gpus(node);
  return serves_gpus(node) || (uncut > 0 && uncut == std::ssize(slice_bars(node)));
}

GpuCount gpus_of(const World& world, const PlannerSettings& settings, const FleetIndex::Impl& index, const Node& node,
                 const NodeAssessment* a) {
  const bool older_text = a != nullptr && edit_not_live(world, settings, index, node, *a);
  GpuCount out{.total = labelled_gpus(node)};
  if (a != nullptr) out.total = std::max({out.total, a->counted_devices, a->recorded_gpus, a->had_devices});
  if (out.total == 0) out.total = served_gpus(index, node, a, older_text);
  if (out.total == 0) out.total = stated_gpus(index, node);
  if (out.total == 0) {
    out.unknown = true;
    out.total = 1;
  }
  if (!node.ready || a == nullptr)
    out.lost = node.ready && offers_gpus(node) ? 0 : out.total;
  else
    out.lost = lost_of(node, *a, out.total, older_text);
  if (node.unschedulable) out.cordoned = out.total - out.lost;
  // With migStrategy single, GFD and the plugin count MIG devices as GPUs.
  const GpuFacts facts = facts_of(node);
  const bool counts_slices =
      !facts.devices && facts.mig_enabled && (facts.mig_strategy == "single" || facts.product.contains("-MIG-"));
  if (!out.unknown && counts_slices) out.mig_slices = out.total;
  return out;
}

std::vector<std::string> operand_problems(const World& world, const FleetIndex::Impl& index, const Node& node,
                                          const NodeAssessment& a) {
  const PluginInstallation& installation = index.installation_of(a);
  if (world.unsynced_namespaces.contains(installation.ns)) return {};
  const NodePods pods = sort_pods(installation, index.pods_of(node.meta.name));
  std::vector<std::string> out;
  for (const Component component : kComponents) {
    const Operand* operand = installation.find(component, node);
    if (operand == nullptr || (component == Component::mps && !shares_by_mps(&a))) continue;
    const std::vector<const Pod*>& there = pods.of(component);
    if (std::ranges::any_of(there, [](const Pod* pod) { return is_serving(*pod); })) continue;
    if (there.empty())
      out.push_back(
          fmt::format("no pod of DaemonSet {} runs on node {}", k8s::to_string(operand->key), node.meta.name));
    for (const Pod* pod : there) {
      out.push_back(fmt::format("pod {} ({}) on node {} {}", shown_value(k8s::to_string(pod->meta.key())),
                                to_string(component), node.meta.name, unready_state_of(*pod)));
    }
  }
  return out;
}

std::vector<AuditProblem> merge_findings(const FleetIndex::Impl& index, const std::vector<Finding>& findings,
                                         const GpusByNode& gpus) {
  using Merged = std::pair<AuditProblem, std::set<std::string>>;  // And the nodes that are counted.
  std::map<std::tuple<Severity, std::string, std::string>, Merged> merged;
  const std::map<std::string_view, const Finding*> first = first_of_nodes(findings);
  const ServedNodes served = served_nodes(index, gpus);
  for (const Finding& finding : findings) {
    auto& [problem, counted_nodes] = merged[{finding.severity, finding.why.code, finding.why.message}];
    if (problem.objects.empty()) {
      problem.severity = finding.severity;
      problem.reason = finding.why;
    }
    if (std::ranges::find(problem.objects, finding.object) != problem.objects.end()) continue;
    problem.objects.push_back(finding.object);
    if (finding.severity == Severity::info && finding.why.code != kInChange) continue;
    const bool of_node = finding.object.kind == "Node" && finding.why.code != kCordoned;
    if (of_node && first.at(finding.object.name) != &finding) continue;
    for (const auto& [node, count] : lost_by(served, gpus, finding)) {
      if (!counted_nodes.insert(node).second) continue;
      problem.gpus_lost += count;
      problem.lost_on.push_back(node);
    }
    // The pods of a node in a change are replaced: that they are not Ready is no problem.
    if (!of_node || finding.why.code == kInChange) continue;
    if (const auto at = gpus.find(finding.object.name); at != gpus.end())
      std::ranges::copy(at->second.pods, std::back_inserter(problem.pods));
  }
  std::vector<AuditProblem> out;
  out.reserve(merged.size());
  for (auto& [key, one] : merged) out.push_back(std::move(one.first));
  std::ranges::stable_sort(out, [](const AuditProblem& a, const AuditProblem& b) {
    return std::tuple(a.severity, -a.gpus_lost, -static_cast<std::int64_t>(a.objects.size())) <
           std::tuple(b.severity, -b.gpus_lost, -static_cast<std::int64_t>(b.objects.size()));
  });
  return out;
}

bool needs_no_action(Severity severity, std::string_view reason) {
  const Check* check = find_check(reason);
  return severity == Severity::info && check != nullptr && check->needs_no_action;
}

std::string no_action_text(std::vector<std::string> reasons) {
  const std::string count = counted(reasons.size(), "info");
  const bool one = reasons.size() == 1;
  std::ranges::sort(reasons);
  const auto repeated = std::ranges::unique(reasons);
  reasons.erase(repeated.begin(), repeated.end());
  return fmt::format("{} need{} no action while an operator runs: {} ({}: -o yaml)", count, one ? "s" : "",
                     fmt::join(reasons, ", "), one ? "its text" : "their texts");
}

}  // namespace gso
