// See policy_preview.h.
#include "controller/commands/rollout/policy_preview.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "controller/commands/shared/print_line.h"
#include "reconcilers/cluster/manifests.h"
#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/explain/reading_pass.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/lint/lint.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/project.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/rollout/stops.h"
#include "reconcilers/status/status.h"

namespace gso {

using Json = nlohmann::ordered_json;

namespace {

// As `lint` says it; empty: valid.
std::string first_error(const RolloutCall& call) {
  for (const LintedDocument& document : lint_text(call.options.file, call.input, KaiPodRules())) {
    for (const Diagnostic& found : document.diagnostics) {
      if (found.severity != Severity::error) continue;
      return found.path.empty() ? found.message : fmt::format("{}: {}", found.path, found.message);
    }
  }
  return {};
}

std::map<std::string, std::string> governing_policies(const FleetIndex& index) {
  std::map<std::string, std::string> out;
  for (const std::string& name : index.node_names())
    out.emplace(name, std::string(index.assessment(name)->policy.view()));
  return out;
}

// What the API server keeps of the present object, if there is one.
void keep_identity(const SharingPolicy* present, k8s::WallTime now, SharingPolicy& next) {
  if (present == nullptr) {
    next.meta.uid = "new";
    next.meta.creation_timestamp = now;
    return;
  }
  k8s::ObjectMeta meta = present->meta;
  for (const auto& [key, value] : next.meta.annotations) meta.annotations.set(key.view(), value.view());
  next.meta = std::move(meta);
  next.finalizers = present->finalizers;
  next.status_json = present->status_json;
}

std::string waves_of(const RolloutSpec& rollout, std::int64_t governed, const PlannerSettings& settings,
                     std::int64_t cluster) {
  if (rollout.mechanism == Mechanism::daemonset_restart)
    return "the DaemonSets replace the pods at their own pace (spec.rollout.mechanism: DaemonSetRestart)";
  const std::string canary =
      rollout.canary_nodes_per_group > 0
          ? fmt::format("first a canary of {} of each GPU product, which must show the profile for {}; then ",
                        counted(rollout.canary_nodes_per_group, "node"), k8s::format_go_duration(rollout.canary_soak))
          : std::string();
  const std::int64_t most =
      std::min(rollout.max_unavailable.of(governed), settings.cluster_max_unavailable.of(cluster));
  return fmt::format(
      "{}at most {} at once (maxUnavailable {} of {}; maxUnavailablePerGroup {}; --cluster-max-unavailable {} of {})",
      canary, counted(most, "node"), rollout.max_unavailable.to_string(), counted(governed, "node"),
      rollout.max_unavailable_per_group.to_string(), settings.cluster_max_unavailable.to_string(),
      counted(cluster, "node"));
}

void add_evictions(const RolloutCall& call, const std::vector<NodeDifference>& nodes,
                   const std::map<std::string, NodeConsumers>& consumers, k8s::WallTime now, FleetIndex& index,
                   const SharingPolicy& policy, PolicyPreview& preview) {
  const Timers timers;
  const Snapshot snapshot{call.world, now, timers, consumers, call.settings};
  ReadingPass pass(snapshot, index);
  if (policy.rollout.workloads == WorkloadMode::interrupt)
    preview.workloads =
        "none is waited for or evicted: a change breaks the pods that use the node's GPUs (spec.rollout.workloads: "
        "Interrupt)";
  bool some_wait = false;
  for (const NodeDifference& d : nodes) {
    if (d.policy != preview.policy || d.blocked_by_pods.empty()) continue;
    if (d.workloads != WorkloadMode::evict) {
      some_wait = true;
      continue;
    }
    const EvictionOutlook outlook =
        pass.eviction_outlook(d.node, *index.assessment(d.node), policy.rollout.evict_bare_pods);
    preview.evicted.push_back({d.node, d.blocked_by_pods, outlook.frees ? std::string() : outlook.why});
  }
  if (some_wait)
    preview.workloads = fmt::format(
        "none is evicted: each node waits up to {} until its pods have ended "
        "(spec.rollout.workloads: WaitForIdle; spec.rollout.idleTimeout)",
        k8s::format_go_duration(policy.rollout.idle_timeout));
}

void print_nodes(const PolicyPreview::NodesOf& nodes, std::string_view does, std::ostream& out) {
  for (const auto& [policy, names] : nodes)
    print_line(out, "  {} {} policy {}: {}", counted(names.size(), "node"), does, policy, first_names(names));
}

Json nodes_json(const PolicyPreview::NodesOf& nodes) {
  Json out = Json::object();
  for (const auto& [policy, names] : nodes) out[policy] = names;
  return out;
}

}  // namespace

std::optional<std::string> policy_in(std::string_view text) {
  const k8s::Result<std::string> json = yaml_to_json(text);
  if (!json) return std::nullopt;
  const Json document = Json::parse(*json, nullptr, false);
  const bool is_policy = document.is_object() && document.contains("kind") && document["kind"] == "SharingPolicy";
  return is_policy ? std::optional(*json) : std::nullopt;
}

k8s::Result<PolicyPreview> apply_policy(RolloutCall& call, const std::string& json, k8s::WallTime now) {
  PolicyPreview out;
  out.invalid = first_error(call);
  k8s::Result<SharingPolicy> read = project_sharing_policy(json);
  if (!read && out.invalid.empty()) return std::unexpected(read.error());
  if (!out.invalid.empty()) {
    if (read) out.policy = read->meta.name;
    return out;
  }
  SharingPolicy next = *std::move(read);
  out.policy = next.meta.name;
  FleetIndex index;
  index.refresh(call.world, call.settings);
  const std::map<std::string, std::string> before = governing_policies(index);
  const SharingPolicy* present = call.world.policies.find(out.policy);
  out.is_new = present == nullptr;
  keep_identity(present, now, next);
  call.world.policies.apply(std::move(next));
  index.note_everything_changed();
  index.refresh(call.world, call.settings);
  const SharingPolicy& policy = *call.world.policies.find(out.policy);
  for (const auto& [name, governs] : governing_policies(index)) {
    const bool has = governs == out.policy;
    const std::string& had = before.at(name);
    out.selected += policy_selects(policy, *call.world.nodes.find(name)) ? 1 : 0;
    out.governed += has ? 1 : 0;
    if (has && had != governs) out.joins[had].push_back(name);
    if (!has && had == out.policy) out.leaves[governs].push_back(name);
  }
  out.overlap = overlap_text(call.world, index.impl(), policy);
  return out;
}

void add_changes(RolloutCall& call, const std::vector<NodeDifference>& nodes,
                 const std::map<std::string, NodeConsumers>& consumers, k8s::WallTime now, PolicyPreview& preview) {
  const bool some = std::ranges::any_of(
      nodes, [&](const NodeDifference& d) { return d.policy == preview.policy && d.blocked.empty(); });
  const SharingPolicy* policy = call.world.policies.find(preview.policy);
  if (!some || policy == nullptr || !preview.invalid.empty()) return;
  {
    FleetIndex index;
    index.refresh(call.world, call.settings);
    preview.waves = waves_of(policy->rollout, preview.governed, call.settings, index.impl().cluster.total);
    add_evictions(call, nodes, consumers, now, index, *policy, preview);
  }
  preview.order = first_starts(call.world, call.settings, now, consumers, preview.policy);
}

void print_selection(const PolicyPreview& preview, bool has_crds, std::ostream& out) {
  if (!preview.invalid.empty()) return;
  print_line(out, "SharingPolicy {} ({}) selects {}, and governs {}", preview.policy,
             preview.is_new ? "new" : "changed", counted(preview.selected, "GPU node"),
             preview.governed == preview.selected && preview.governed > 0
                 ? preview.governed == 1 ? std::string("it") : "all of them"
                 : counted(preview.governed, "node"));
  if (preview.selected == 0)
    print_line(out, "  no GPU node has the labels that spec.nodeSelector asks for: `kubectl get nodes --show-labels`");
  print_nodes(preview.joins, "would leave", out);
  print_nodes(preview.leaves, "would return to", out);
  if (!preview.overlap.empty()) print_line(out, "  {}", preview.overlap);
  if (!has_crds)
    print_line(out, "  the SharingPolicy/SharingRollout CRDs are not installed in this cluster: first run `{}`",
               kInstallCrds);
}

void print_waves(const PolicyPreview& preview, std::ostream& out) {
  if (!preview.waves.empty()) print_line(out, "Waves: {}", preview.waves);
  if (!preview.workloads.empty()) print_line(out, "Pods: {}", preview.workloads);
  for (const EvictedPods& evicted : preview.evicted) {
    if (evicted.why_not.empty()) {
      print_line(out, "Would evict on {}, as many as its change needs: {}", evicted.node, first_names(evicted.pods));
    } else {
      print_line(out, "Would wait for pods on {}, although spec.rollout.workloads is Evict: {}", evicted.node,
                 evicted.why_not);
    }
  }
}

Json preview_json(const PolicyPreview& preview) {
  Json evicted = Json::array();
  for (const EvictedPods& of_node : preview.evicted)
    evicted.push_back({{"node", of_node.node}, {"pods", of_node.pods}, {"whyNot", of_node.why_not}});
  return {{"name", preview.policy},
          {"new", preview.is_new},
          {"selected", preview.selected},
          {"governed", preview.governed},
          {"joins", nodes_json(preview.joins)},
          {"leaves", nodes_json(preview.leaves)},
          {"overlap", preview.overlap},
          {"waves", preview.waves},
          {"workloads", preview.workloads},
          {"evicted", std::move(evicted)},
          {"startFirst", preview.order.nodes},
          {"wait", preview.order.waits}};
}

}  // namespace gso
