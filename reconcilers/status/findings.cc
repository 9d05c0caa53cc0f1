// The default policy, and the findings about nodes, ConfigMaps and DaemonSets that no policy's status has.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "reconcilers/cluster/cluster_pods.h"
#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/status/next_status.h"

namespace gso {

void plan_default_policy(Pass& pass) {
  const World& world = pass.s.world;
  if (!world.policies_served || !world.policies.synced() || world.policies.find(kDefaultPolicy) != nullptr) return;
  // The last spec is unknown: a policy created from the flags would remove a stop.
  if (!pass.index.record_problem.empty()) return;
  const RolloutSpec& rollout = pass.s.settings.rollout;
  auto count = [](const IntOrPercent& value) { return value.percent ? Json(value.to_string()) : Json(value.value); };
  Json spec = {
      {"nodeSelector", Json::object()},
      {"priority", -1000},
      {"mode", word_of(kPolicyModeWords, pass.s.settings.mode)},
      {"rollout",
       {{"maxUnavailable", count(rollout.max_unavailable)},
        {"maxUnavailablePerGroup", count(rollout.max_unavailable_per_group)},
        {"canary",
         {{"nodesPerGroup", rollout.canary_nodes_per_group}, {"soak", k8s::format_go_duration(rollout.canary_soak)}}},
        {"workloads", word_of(kWorkloadModeWords, rollout.workloads)},
        {"idleTimeout", k8s::format_go_duration(rollout.idle_timeout)},
        {"verifyTimeout", k8s::format_go_duration(rollout.verify_timeout)},
        {"maxFailures", rollout.max_failures}}}};
  if (rollout.cordon) spec["rollout"]["cordon"] = *rollout.cordon;
  if (rollout.paused) spec["rollout"]["paused"] = true;
  Json object = {{"apiVersion", kApiVersion}, {"kind", "SharingPolicy"}, {"metadata", {{"name", kDefaultPolicy}}}};
  ObjectRef ref{std::string(kApiVersion), "SharingPolicy", "", std::string(kDefaultPolicy), ""};
  if (const auto kept = pass.index.held_policies.find(std::string(kDefaultPolicy));
      kept != pass.index.held_policies.end()) {
    const Json kept_spec = Json::parse(kept->second.spec_json, nullptr, false);
    if (kept_spec.is_object()) spec = kept_spec;
    for (const auto& entry : kept->second.meta.annotations)
      object["metadata"]["annotations"][std::string(entry.key.view())] = entry.value.view();
    const std::string stop = stops_of(kept->second);
    pass.event(ref, true, kPolicyGone, "Create",
               fmt::format("SharingPolicy {} was deleted: the operator creates it again with its last spec{}",
                           kDefaultPolicy, stop.empty() ? "" : " (" + stop + ")"));
  }
  object["spec"] = std::move(spec);
  pass.add(CreateObject{std::move(ref), dump(object)}, "DefaultPolicy",
           "creates the default policy, for people to read, pause and tune");
}

namespace {

constexpr std::size_t kMost = 50;  // Findings of one kind.

// What is reported of one node; empty: nothing.
using OfNode = std::vector<Reason>(const Pass&, const Node&, const NodeAssessment&);

// Of the first of these nodes: the counts are in the status.
void report_nodes(Pass& pass, const auto& nodes, OfNode* of, Severity severity = Severity::warning) {
  std::size_t reported = 0;
  for (const std::string& name : nodes) {
    const Node* node = pass.s.world.nodes.find(name);
    const NodeAssessment* a = pass.index.find(name);
    if (node == nullptr || a == nullptr) continue;
    if (reported >= kMost) return;
    std::vector<Reason> found = of(pass, *node, *a);
    if (!found.empty()) ++reported;
    for (Reason& why : found) {
      const bool given_twice_now = why.code == kDraDoubleOffer && is_double_offer_permanent(*node);
      pass.finding(given_twice_now ? Severity::error : severity, node_ref(name), why.code, std::move(why.message));
    }
  }
}

// Where pods or ConfigMaps of the plugin's namespace have not been read, a pod that is missing in the view can run, and
// what is not read is not "missing".
template <OfNode kOf>
std::vector<Reason> once_read(const Pass& pass, const Node& node, const NodeAssessment& a) {
  return pass.plannable(a) ? kOf(pass, node, a) : std::vector<Reason>();
}

// Anything that temporarily unregisters the plugin's GPUs makes them available twice, also a crash or a reboot.
std::vector<Reason> double_offered(const Pass& pass, const Node& node, const NodeAssessment& a) {
  const bool is_blocked_by_it = a.is_blocked() && a.obstacle.code == kDraDoubleOffer;  // Reported with those.
  if (a.phase == Phase::unmanaged || is_blocked_by_it) return {};
  return {{kDraDoubleOffer, double_offer(node, pass.index.dra.class_of(node.meta.name))}};
}

// Two device plugins register the same resource.
std::vector<Reason> conflicts(const Pass& pass, const Node& node, const NodeAssessment& a) {
  const Operand* plugin = pass.index.installation_of(a).find(Component::plugin, node);
  if (plugin == nullptr || a.is_contested()) return {};  // find_blocked() reports these.
  const std::string daemonset = k8s::to_string(plugin->key);
  return {{kDevicePluginConflict,
           fmt::format(
               "the device plugins of DaemonSet {} and of {} run on this node: the kubelet serves the devices of the "
               "one that registered last. The operator uses DaemonSet {}, which is recorded for the node. Exclude the "
               "node from the others with their nodeSelector, or delete them",
               daemonset, a.other_plugins.view(), daemonset)}};
}

std::vector<Reason> drifting(const Pass& /*pass*/, const Node& /*node*/, const NodeAssessment& a) {
  return {{a.labels_missing.empty() ? kDrift : kLabelsMissing, drift_text(a)}};
}

std::vector<Reason> excused_drift(const Pass& /*pass*/, const Node& /*node*/, const NodeAssessment& a) {
  if (const std::string_view why = excuse_of(a); !why.empty()) {
    return {
        {why, fmt::format("does not show the profile that it runs, and is not repaired now: {}", shown_difference(a))}};
  }
  if (baseline_excuse(a) == kPreexistingDrift) return {};  // preexisting_drift() reports it.
  return {
      {kUnproven, fmt::format("{}; its pods are not restarted: they are older than the text, which they would load. "
                              "If that is wanted: `gpu-sharing-operator rollout start {} --adopt`",
                              shown_difference(a), a.policy.view())}};
}

std::vector<Reason> preexisting_drift(const Pass& pass, const Node& /*node*/, const NodeAssessment& a) {
  if (!pass.index.record || !drifts(a)) return {};
  return {{kPreexistingDrift, shown_difference(a)}};
}

std::vector<Reason> missing_devices(const Pass& /*pass*/, const Node& /*node*/, const NodeAssessment& a) {
  return {{kUnhealthyDevices, std::string(a.missing_of_loaded.view())}};
}

// A start outside the order: the budgets and the canary did not apply to it, and it proves nothing for the revision.
std::vector<Reason> early_text(const Pass& /*pass*/, const Node& /*node*/, const NodeAssessment& a) {
  return {{kLoadedUngated,
           fmt::format("shows {} ({}) before its change to it, outside the order of the rollout: {} for {}. Something "
                       "else made its pods read the edited text: its label was changed and changed back, or the plugin "
                       "got SIGHUP. It is not a canary; its pods are replaced when its turn comes",
                       a.target.view(), a.profile_ref.view(), a.early_text.view(), a.loaded.revision.view())}};
}

// Nodes in a change whose new pods fail: named before verifyTimeout has passed. Nodes that stand half-way have a
// finding of their own (node_step.h).
std::vector<Reason> failing_pods(const Pass& pass, const Node& node, const NodeAssessment& a) {
  const ChangeTrouble* trouble = trouble_in_change(pass, node.meta.name, a);
  if (trouble == nullptr || trouble->kind != ChangeTrouble::Kind::container) return {};
  return {{trouble->code, trouble->message}};
}

std::vector<Reason> coming_break(const Pass& /*pass*/, const Node& /*node*/, const NodeAssessment& a) {
  // Preflight reports what is missing; if that is the ConfigMap, once for the ClusterPolicy.
  if (a.source == EffectiveKey::Source::error || !a.would_break_by.empty()) return {};
  return {{kNodesWouldBreak, std::string(a.would_break.view())}};
}

std::vector<Reason> dropped_labels(const Pass& /*pass*/, const Node& /*node*/, const NodeAssessment& a) {
  std::vector<Reason> out;
  for (const auto& [label, value] : a.expectation->dropped_labels) {
    out.emplace_back(kLabelDropped,
                     fmt::format("label {} is not written: \"{}\" is not a valid label value (63 characters at most). "
                                 "Set a shorter name in the annotation {}",
                                 label, shown_value(value), kDevicesAnnotation));
  }
  return out;
}

std::vector<Reason> of_its_labels(const Pass& pass, const Node& node, const NodeAssessment& a) {
  return label_problems(node, a, pass.s.settings);
}

std::vector<Reason> of_obstacle(const Pass& /*pass*/, const Node& /*node*/, const NodeAssessment& a) {
  // Preflight reports all nodes of an installation together whose label selects an MPS key that it cannot load.
  const bool in_common = a.setup != nullptr && std::ranges::any_of(*a.setup, [&](const Diagnostic& d) {
                           return d.code == a.obstacle.code && !d.key.empty();
                         });
  return in_common ? std::vector<Reason>() : std::vector{a.obstacle};
}

// A policy that governs no node, whatever it selects, unless it has a stop.
void plan_refused_selectors(Pass& pass) {
  for (const SharingPolicy* policy : in_order(pass.s.world.policies))
    if (std::string problem = selector_problem(*policy); !problem.empty())
      pass.finding(Severity::error, policy_ref(*policy), kSelectorOnSharingLabel, std::move(problem));
}

// What a selector does that its author might not mean.
void plan_selector_notes(Pass& pass) {
  for (const SharingPolicy* policy : in_order(pass.s.world.policies))
    for (const Reason& note : selector_notes(*policy))
      pass.finding(Severity::warning, policy_ref(*policy), note.code, note.message);
}

// After that, GPUs of the node accept one process only, with time-slicing or without.
void plan_unclean_exits(Pass& pass) {
  for (const auto& [name, killed] : pass.s.world.killed_daemons) {
    const Duration age = pass.s.now - killed.deleted_at;
    if (age > kUncleanExitReported) continue;
    pass.look_again_in(kUncleanExitReported - age + std::chrono::seconds(1));
    const std::string message = fmt::format(
        "MPS control daemon pod {} was killed (exit code 137): the node's GPUs might be left in compute mode "
        "EXCLUSIVE_PROCESS until an MPS control daemon runs there again. If none is to run there, run "
        "`nvidia-smi -c DEFAULT` on the node or reboot it",
        killed.pod);
    pass.event(node_ref(name), true, kMpsUncleanExit, "Restart", message);
    if (!killed.replaced) pass.finding(Severity::warning, node_ref(name), kMpsUncleanExit, message);
  }
}

// DaemonSets outside the operand namespaces that look like an operand's: whoever can create DaemonSets in one namespace
// can make one.
void plan_foreign_plugins(Pass& pass) {
  const World& world = pass.s.world;
  std::size_t shown = 0;
  std::size_t more = world.foreign_daemonsets_beyond;
  for (const DaemonSet* daemonset : in_order(world.foreign_daemonsets)) {
    std::string ignored = foreign_plugin_text(*daemonset);
    if (ignored.empty()) continue;
    if (shown == kMost) {
      ++more;
      continue;
    }
    ++shown;
    pass.finding(Severity::warning, daemonset_ref(daemonset->meta.key()), kForeignDevicePlugin, std::move(ignored));
  }
  if (more == 0) return;
  pass.finding(
      Severity::warning, {"v1", "Namespace", "", pass.s.settings.operator_namespace, ""}, kForeignDevicePlugin,
      fmt::format("outside the operand namespaces the operator ignores {} with a container that has the name of "
                  "a part of the device plugin: kubectl get daemonsets --all-namespaces -o wide",
                  counted(more, "further DaemonSet")));
}

void plan_unmanaged_config(Pass& pass, const Operand& operand, std::set<ObjectKey>& reported) {
  if (operand.file_config_map.empty() || !reported.insert(operand.key).second) return;
  pass.finding(
      Severity::warning, daemonset_ref(operand.key), kConfigNotManaged,
      fmt::format(
          "its main container reads {} of ConfigMap {}/{} by itself (--config-file or CONFIG_FILE), without a "
          "config-manager sidecar. The operator cannot know which nodes an edit concerns, so edits are not rolled "
          "out: they take effect when the pods restart. To roll out edits, name the ConfigMap in "
          "devicePlugin.config of the ClusterPolicy, or in config.name of the device plugin's chart",
          operand.config_file, operand.key.ns, operand.file_config_map));
}

// Problems of DaemonSets, independent of the nodes that they select.
void plan_daemonset_findings(Pass& pass) {
  std::set<ObjectKey> reported;
  for (const PluginInstallation& installation : pass.index.discovery.installations) {
    for (const Operand& operand : installation.operands) plan_unmanaged_config(pass, operand, reported);
    if (!installation.announced || pass.s.world.unsynced_namespaces.contains(installation.ns)) continue;
    const std::string stays = lasting_difference(pass, installation);
    if (stays.empty()) continue;
    const auto differs = std::ranges::find_if(installation.operands, [&](const Operand& operand) {
      return operand.config_map != installation.announced_config_map ||
             operand.default_key != installation.announced_default;
    });
    if (differs != installation.operands.end())
      pass.finding(Severity::warning, daemonset_ref(differs->key), kDaemonSetDiffers, stays);
  }
  for (const Operand& stray : pass.index.discovery.strays) plan_unmanaged_config(pass, stray, reported);
}

void plan_announced_losses(Pass& pass) {
  if (pass.index.nodes_in(Bucket::would_shrink).empty()) return;
  for (const PluginInstallation& installation : pass.index.discovery.installations)
    if (std::string loss = announced_loss(pass, installation); !loss.empty())
      pass.finding(Severity::warning, cluster_policy_ref(installation.owner), kNodesWouldShrink, std::move(loss));
}

void find_unknown_times(Pass& pass) {
  std::set<ObjectKey> config_maps;
  for (const PluginInstallation& installation : pass.index.discovery.installations)
    config_maps.insert(installation.config_map_key());
  for (const ObjectKey& key : config_maps) {
    const ConfigMap* config_map = pass.s.world.configmaps.find(key);
    if (config_map == nullptr || config_map->data.empty() || data_known_since(pass.s.world, *config_map)) continue;
    pass.finding(
        Severity::error, config_map_ref(key), kChangeTimeUnknown,
        "it has no managedFields for its data, so the time of its last change is unknown, and no pod counts as "
        "having loaded it. Print the manifests with `kubectl get … -o yaml --show-managed-fields`");
  }
}

// Before the record exists nothing is Blocked, but a policy's mistake is reported anyway.
void find_wrong_keys(Pass& pass) {
  const Index& index = pass.index;
  std::set<std::string_view> reported;
  for (const std::string& name : index.nodes_in(Bucket::unrecorded)) {
    const NodeAssessment& a = *index.find(name);
    if (!a.wrong_key || !pass.plannable(a) || !reported.insert(a.policy.view()).second) continue;
    pass.finding(Severity::error, policy_ref(index.policy(pass.s.world, std::string(a.policy.view()))), kConfigInvalid,
                 a.obstacle.message);
  }
}

// An invalid profile is reported once, for the policy or ConfigMap that it comes from.
void report_invalid(Pass& pass, const RolloutKey& key, const ProfileRollout& profile_rollout,
                    const NodeAssessment& blocked) {
  if (blocked.has_unknown_label()) return;  // Preflight reports it for the node: KeyNotFound.
  const PluginInstallation& installation = pass.index.discovery.installations[profile_rollout.installation];
  const std::string_view check = blocked.blocked_by == nullptr ? std::string_view() : blocked.blocked_by->code;
  pass.finding(Severity::error,
               blocked.wrong_key ? policy_ref(pass.index.policy(pass.s.world, key.policy))
                                 : config_map_ref(installation.config_map_key()),
               kConfigInvalid, blocked.obstacle.message, check == kConfigInvalid ? key.key : std::string(), check);
}

void find_blocked(Pass& pass) {
  const Index& index = pass.index;
  for (const auto& [key, profile_rollout] : index.profile_rollouts) {
    for (const auto& [reason, nodes] : profile_rollout.blocked) {
      if (reason == kConfigInvalid) {
        report_invalid(pass, key, profile_rollout, *index.find(*nodes.begin()));
        continue;
      }
      report_nodes(pass, nodes, of_obstacle);
    }
  }
}

// Installations to which profiles do not apply, or that the operator does not recognize.
void find_other_providers(Pass& pass) {
  for (const auto& [key, cluster] : pass.s.world.gpu_clusters.all()) {
    pass.finding(
        Severity::warning, {"nvidia.com/v1alpha1", "GPUCluster", "", key.name, cluster->meta.uid}, kProviderUnsupported,
        "the DRA driver serves the GPUs: sharing by ConfigMap does not apply, and the operator does not change nodes "
        "of the GPU Operator. Configure MPS in the DeviceClass or ResourceClaim of the claims");
  }
  for (const std::string& complaint : pass.index.discovery.complaints)
    pass.finding(Severity::warning, {"apps/v1", "DaemonSet", "", "", ""}, kProviderUnsupported, complaint);
}

}  // namespace

void plan_findings(Pass& pass) {
  const Index& index = pass.index;
  report_unreadable_record(pass);
  find_held_policies(pass);
  find_unknown_times(pass);
  report_nodes(pass, index.nodes_in(Bucket::drifting), once_read<drifting>);
  report_nodes(pass, index.nodes_in(Bucket::excused_drift), once_read<excused_drift>);
  report_nodes(pass, index.nodes_in(Bucket::missing_devices), missing_devices);
  report_nodes(pass, index.nodes_in(Bucket::early_text), once_read<early_text>);
  report_nodes(pass, index.nodes_in(Bucket::changing), failing_pods);
  plan_unclean_exits(pass);
  report_nodes(pass, index.nodes_in(Bucket::contested), conflicts);
  plan_foreign_plugins(pass);
  plan_daemonset_findings(pass);
  plan_announced_losses(pass);
  plan_refused_selectors(pass);
  plan_selector_notes(pass);
  report_nodes(pass, index.dra.nodes(pass.s.world), once_read<double_offered>);
  find_wrong_keys(pass);
  find_blocked(pass);
  report_nodes(pass, index.nodes_in(Bucket::would_break), once_read<coming_break>, Severity::error);
  report_nodes(pass, index.nodes_in(Bucket::unwritable), dropped_labels);
  report_nodes(pass, index.nodes_in(Bucket::label_problems), of_its_labels);
  find_other_providers(pass);
  report_nodes(pass, index.nodes_in(Bucket::drifted_at_install), once_read<preexisting_drift>);
}

}  // namespace gso
