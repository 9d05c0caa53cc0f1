// What the planners find, and what nobody plans for: other tools beside the plugin, and what people have set.
#include "reconcilers/explain/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <tuple>
#include <utility>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/cluster/facts.h"
#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/status/status.h"

namespace gso {

Finding found(Severity severity, ObjectRef object, std::string_view code, std::string message) {
  return {severity, std::move(object), {code, std::move(message)}};
}

namespace {

// A node that serves what its pods read before an edit has not drifted: the edit is what is said. True if it is one.
bool name_edit(const Snapshot& snapshot, const FleetIndex& index, Finding& finding) {
  const Node* node = finding.object.kind == "Node" ? snapshot.world.nodes.find(finding.object.name) : nullptr;
  const NodeAssessment* a = node == nullptr ? nullptr : index.assessment(finding.object.name);
  if (a == nullptr || finding.why.code != kPreexistingDrift) return false;
  const auto edited = edit_not_live(snapshot.world, snapshot.settings, index.impl(), *node, *a);
  if (!edited) return false;
  finding.why = {kEditNotLive, edit_not_live_text(snapshot.world, index.impl(), *a, *edited)};
  return true;
}

}  // namespace

std::vector<Finding> all_findings(const Snapshot& snapshot, const FleetIndex& index, const Plan& plan) {
  std::vector<Finding> out = plan.findings;
  // A node that does not show what its ConfigMap says is an error for whoever asks, though it stops no rollout.
  for (Finding& finding : out) {
    const bool drifts = finding.why.code == kDrift || finding.why.code == kPreexistingDrift;
    if (drifts && finding.severity == Severity::warning && !name_edit(snapshot, index, finding))
      finding.severity = Severity::error;
  }
  return out;
}

namespace {

// A mark on a DaemonSet or its template by which something replaces all of its pods at once when a ConfigMap changes.
struct Restarter {
  std::string_view prefix;
  std::string_view tool;
  std::string_view effect;
};
constexpr std::array<Restarter, 5> kRestarters{{
    {"reloader.stakater.com/", "Reloader", "it restarts all pods as soon as the ConfigMap is edited"},
    {"configmap.reloader.stakater.com/", "Reloader", "it restarts all pods as soon as the ConfigMap is edited"},
    {"rollme", "a Helm chart with the annotation rollme", "every helm upgrade restarts all pods"},
    {"checksum/", "a Helm chart with a checksum annotation",
     "a helm upgrade with another profile restarts all pods at once"},
    {"wave.pusher.com/", "Wave", "it restarts all pods as soon as the ConfigMap is edited"},
}};

void restarters(const World& world, const Operand& operand, std::vector<Finding>& out) {
  const DaemonSet* daemonset = world.daemonsets.find(operand.key);
  if (daemonset == nullptr) return;
  std::string_view reported;
  for (const Restarter& restarter : kRestarters) {
    const bool marked = std::ranges::any_of(
        daemonset->meta.annotations, [&](const auto& entry) { return entry.key.view().starts_with(restarter.prefix); });
    if (!marked || restarter.tool == reported) continue;
    reported = restarter.tool;
    out.push_back(found(Severity::warning, daemonset_ref(operand.key), "OtherRestarter",
                        fmt::format("{} also restarts these pods: {}, without canary, budgets or checks of workloads. "
                                    "Exclude the DaemonSet there",
                                    restarter.tool, restarter.effect)));
  }
}

// Argo CD or Flux writes its own version of the ConfigMap back, a profile that was corrected by hand included.
void owned_by_gitops(const World& world, const PluginInstallation& installation, std::vector<Finding>& out) {
  const ConfigMap* config_map = world.configmaps.find(installation.config_map_key());
  const GitOpsOwner owner = config_map == nullptr ? GitOpsOwner() : gitops_owner(*config_map);
  if (!owner.syncs) return;
  out.push_back(found(
      Severity::info, config_map_ref(config_map->meta.key()), "OwnedByGitOps",
      fmt::format("{} owns the ConfigMap: an edit by hand is undone at the next sync (within minutes where it syncs "
                  "by itself), and each of the two changes restarts nodes. Change the profile in Git",
                  owner.tool)));
}

// What does not go with the plugin's MPS daemon on the same node, known by its image or its containers.
void beside_mps(const World& world, const FleetIndex& index, const DaemonSet& daemonset, std::vector<Finding>& out) {
  bool fractions = false;  // kai-gpu-fractioning runs an MPS daemon of its own.
  bool exports = false;
  for (const ContainerSpec& container : daemonset.containers) {
    fractions = fractions || container.image.contains("gpu-fractioning") || container.name == "mpsd" ||
                container.name == "fractiond";
    exports = exports || container.image.contains("dcgm-exporter");
  }
  if (!fractions && !exports) return;
  const Operand placement = placement_of(daemonset);
  const bool runs_mps = std::ranges::any_of(index.node_names(), [&](const std::string& name) {
    const Node* node = world.nodes.find(name);
    return shares_by_mps(index.assessment(name)) && node != nullptr && selects(placement, *node, true) != Selects::no;
  });
  const ObjectRef ref = daemonset_ref(daemonset.meta.key());
  if (fractions && runs_mps)
    out.push_back(
        found(Severity::error, ref, "SecondMPSDaemon",
              "kai-gpu-fractioning runs an MPS daemon on nodes where the device plugin runs one: both set the "
              "compute mode of the GPUs, and clients of one of them fail. Keep one of the two off these nodes"));
  if (exports && runs_mps)
    out.push_back(found(Severity::info, ref, "MetricsNotAttributed",
                        "under MPS, DCGM exporter cannot attribute the metrics of a GPU to the pods that share it (all "
                        "of them are clients of one server process): dashboards and chargeback by pod are empty or "
                        "wrong there. Use metrics of the GPU, or of the applications"));
}

// HAMi gives out the same GPUs by a device plugin and a scheduler of its own.
void second_plugin(const std::vector<Operand>& hami_plugins, const Node& node, std::vector<Finding>& out) {
  if (const Operand* hami = hami_plugin_on(hami_plugins, node)) {
    out.push_back(found(
        Severity::error, node_ref(node.meta.name), "SecondDevicePlugin",
        fmt::format("HAMi's device plugin (DaemonSet {}) serves the GPUs of this node as well: both hand out the same "
                    "GPUs, and neither knows of the other. Keep one of them off the node, by its node selector",
                    k8s::to_string(hami->key))));
  } else if (was_registered_by_hami(node)) {
    out.push_back(found(
        Severity::warning, node_ref(node.meta.name), "SecondDevicePlugin",
        fmt::format("the annotation {} says that HAMi's device plugin has registered the GPUs of this node, and no "
                    "DaemonSet of HAMi selects the node now: HAMi's scheduler might still place pods there. If HAMi "
                    "is no longer on the node, remove the annotation: `kubectl annotate node NODE {}-`",
                    hami::kRegistered, hami::kRegistered)));
  }
}

// Without an extended resource name the scheduler does not mix the two, but one GPU is still handed out twice.
void dra_beside_plugin(const World& world, const FleetIndex::Impl& index, std::vector<Finding>& out) {
  for (const std::string& name : index.dra.offering(world)) {
    const Node* node = world.nodes.find(name);
    if (node == nullptr || !index.dra.class_of(name).empty() || !serves_gpus(*node)) continue;
    out.push_back(
        found(Severity::warning, node_ref(name), "DRABesidePlugin",
              fmt::format("the DRA driver {} and a device plugin both offer the GPUs of this node: a pod with a "
                          "ResourceClaim and a pod that requests nvidia.com/gpu can get the same GPU. Keep one "
                          "of the two off the node",
                          kGpuDraDriver)));
  }
}

}  // namespace

std::vector<Finding> neighbours(const World& world, const FleetIndex& index) {
  std::vector<Finding> out;
  for (const PluginInstallation& installation : index.installations()) {
    for (const Operand& operand : installation.operands) restarters(world, operand, out);
    owned_by_gitops(world, installation, out);
  }
  for (const DaemonSet* daemonset : all_daemonsets(world)) beside_mps(world, index, *daemonset, out);
  const std::vector<Operand> hami = hami_plugins(world);
  for (const Node* node : in_order(world.nodes))
    if (index.assessment(node->meta.name) != nullptr) second_plugin(hami, *node, out);
  dra_beside_plugin(world, index.impl(), out);
  return out;
}

namespace {

std::tuple<std::string_view, std::string_view, std::string_view> place_of(const ObjectRef& object) {
  return {object.kind, object.ns, object.name};
}

// `where`: "annotation" or "label", according to `values`.
std::optional<Finding> ignored(const ObjectRef& object, std::string_view where, const k8s::StringMap& values,
                               std::string_view key, std::string_view reason, std::string_view effect) {
  const auto value = values.get(key);
  if (!value || !value->empty()) return std::nullopt;
  const std::string command = fmt::format("kubectl {} {} {}{} {}", where == "label" ? "label" : "annotate",
                                          object.kind == "Node" ? "node" : "configmap", object.name,
                                          object.ns.empty() ? "" : " --namespace " + object.ns, key);
  // Somebody might have wanted to remove it.
  return found(Severity::warning, object, reason,
               fmt::format("{} {} has no value, so it does not {}. To {}: `{}=true --overwrite`. To remove it: `{}-`",
                           where, key, effect, effect, command, command));
}

}  // namespace

std::optional<Finding> ignored_hold(const Node& node) {
  if (is_held(node)) return std::nullopt;
  const ObjectRef object = node_ref(node.meta.name);
  auto out = ignored(object, "annotation", node.meta.annotations, kHoldAnnotation, "HoldIgnored", "hold the node");
  return out ? out : ignored(object, "label", node.meta.labels, kHoldAnnotation, "HoldIgnored", "hold the node");
}

namespace {

// Of all Nodes, and of the ConfigMaps that plugins mount.
std::vector<Finding> ignored_switches(const World& world) {
  std::vector<Finding> out;
  for (const auto& [key, node] : world.nodes.all())
    if (auto finding = ignored_hold(*node)) out.push_back(*std::move(finding));
  for (const auto& [key, config_map] : world.configmaps.all()) {
    auto finding = ignored(config_map_ref(key), "annotation", config_map->meta.annotations, kPausedAnnotation,
                           "PausedIgnored", "pause rollouts of this ConfigMap");
    if (finding) out.push_back(*std::move(finding));
  }
  std::ranges::sort(out, {}, [](const Finding& finding) { return place_of(finding.object); });
  return out;
}

IdlePause pause_of_policy(const World& world, const FleetIndex::Impl& index, const SharingPolicy& policy) {
  IdlePause out{policy_ref(policy), "is paused (spec.rollout.paused): edits are not rolled out",
                resume_command("policy/" + policy.meta.name)};
  if (nodes_of_policy(index, policy.meta.name).total > 0) return out;
  // The policies that govern its nodes roll edits out.
  const std::string overlap = overlap_text(world, index, policy);
  out.text =
      fmt::format("is paused (spec.rollout.paused), and governs no node now{}{}", overlap.empty() ? "" : ": ", overlap);
  return out;
}

// Of the ConfigMaps that plugins mount.
std::vector<IdlePause> idle_config_map_pauses(const World& world, const FleetIndex::Impl& index) {
  std::set<ObjectKey> mounted;
  for (const PluginInstallation& installation : index.discovery.installations) {
    const bool some_wait = std::ranges::any_of(index.profile_rollouts, [&](const auto& entry) {
      return installation.has_id(entry.first.config_map) && entry.second.tally.of(Phase::pending) > 0;
    });
    if (!installation.config_map.empty() && !some_wait) mounted.insert(installation.config_map_key());
  }
  std::vector<IdlePause> out;
  for (const ObjectKey& key : mounted) {
    const ConfigMapPause pause = pause_of(world, index.record_or_null(), key);
    if (pause == ConfigMapPause::none) continue;
    out.push_back({config_map_ref(key),
                   fmt::format("is paused (annotation {}{}): edits are not rolled out", kPausedAnnotation,
                               pause == ConfigMapPause::record ? " of a deleted one of this name" : ""),
                   resume_command(world, key)});
  }
  return out;
}

}  // namespace

std::vector<IdlePause> idle_pauses(const World& world, const FleetIndex::Impl& index) {
  std::vector<IdlePause> out = idle_config_map_pauses(world, index);
  for (const auto& [key, policy] : world.policies.all()) {
    const bool some_wait = nodes_of_policy(index, policy->meta.name).of(Phase::pending) > 0;
    if (policy->rollout.paused && !some_wait) out.push_back(pause_of_policy(world, index, *policy));
  }
  std::ranges::sort(out, {}, [](const IdlePause& pause) { return place_of(pause.object); });
  return out;
}

std::vector<Finding> idle_pause_findings(const World& world, const FleetIndex::Impl& index) {
  std::vector<Finding> out;
  for (IdlePause& pause : idle_pauses(world, index)) {
    const bool is_policy = pause.object.kind == "SharingPolicy";
    std::string message =
        fmt::format("the {} {}. To resume: `{}`", is_policy ? "policy" : "ConfigMap", pause.text, pause.resume.text());
    out.push_back(found(Severity::info, std::move(pause.object), is_policy ? "PolicyPaused" : "ConfigMapPaused",
                        std::move(message)));
  }
  return out;
}

namespace {

std::vector<Finding> undecided_overlaps(const World& world, const FleetIndex::Impl& index) {
  std::vector<Finding> out;
  for (const auto& [key, policy] : world.policies.all()) {
    const std::string& name = policy->meta.name;
    const bool undecided = std::ranges::any_of(index.overlaps, [&](const auto& entry) {
      const auto& [loser, winner] = entry.first;
      return loser == name && index.policy(world, winner).priority == policy->priority;
    });
    if (!undecided) continue;
    out.push_back(found(Severity::info, policy_ref(*policy), kPolicyOverlap,
                        fmt::format("another policy has the same spec.priority ({}) and selects the same nodes; {}. To "
                                    "decide which one governs, give them different priorities",
                                    policy->priority, overlap_text(world, index, *policy))));
  }
  std::ranges::sort(out, {}, [](const Finding& finding) { return finding.object.name; });
  return out;
}

}  // namespace

std::vector<Finding> findings_of_settings(const World& world, const FleetIndex::Impl& index) {
  std::vector<Finding> out = ignored_switches(world);
  std::ranges::move(idle_pause_findings(world, index), std::back_inserter(out));
  std::ranges::move(undecided_overlaps(world, index), std::back_inserter(out));
  return out;
}

}  // namespace gso
