// The default policy, and the findings about nodes, ConfigMaps and DaemonSets that no policy's status has.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <ranges>
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
#include "reconcilers/rollout/gates.h"
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/status/status.h"

namespace gso {

using Json = nlohmann::json;

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
    for (const auto& entry : kept->second.meta.annotations) {
      object["metadata"]["annotations"][std::string(entry.key.view())] = entry.value.view();
    }
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

// Anything that temporarily unregisters the plugin's GPUs makes them available twice, also a crash or a reboot.
void plan_double_offers(Pass& pass) {
  std::size_t shown = 0;
  for (const std::string& name : pass.index.dra.nodes(pass.s.world)) {
    const NodeAssessment* a = pass.index.find(name);
    if (a == nullptr || a->phase == Phase::unmanaged || !pass.plannable(*a)) continue;
    if (a->is_blocked() && a->obstacle.code == kDraDoubleOffer) continue;  // Reported with the Blocked nodes.
    if (++shown > kMost) break;
    pass.finding(Severity::warning, node_ref(name), kDraDoubleOffer, double_offer(pass.index.dra.class_of(name)));
  }
}

// What a selector does that its author might not mean. By name: the store has no order.
void plan_selector_notes(Pass& pass) {
  std::map<std::string, std::vector<Reason>> notes;
  for (const auto& [key, policy] : pass.s.world.policies.all()) {
    if (auto found = selector_notes(*policy); !found.empty()) notes.emplace(key.name, std::move(found));
  }
  for (const auto& [name, found] : notes) {
    for (const Reason& note : found)
      pass.finding(Severity::warning, policy_ref(*pass.s.world.policies.find(name)), note.code, note.message);
  }
}

// A policy that governs no node, whatever it selects, unless it has a stop.
void plan_refused_selectors(Pass& pass) {
  std::map<std::string, std::string> problems;  // By policy: the store has no order.
  for (const auto& [key, policy] : pass.s.world.policies.all()) {
    if (std::string problem = selector_problem(*policy); !problem.empty())
      problems.emplace(key.name, std::move(problem));
  }
  for (const auto& [name, problem] : problems) {
    pass.finding(Severity::error, policy_ref(*pass.s.world.policies.find(name)), kSelectorOnSharingLabel, problem);
  }
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

// Nodes on which two device plugins register the same resource.
void plan_conflicts(Pass& pass) {
  std::size_t shown = 0;
  for (const std::string& name : pass.index.nodes_in(Bucket::contested)) {
    const NodeAssessment& a = *pass.index.find(name);
    const Node* node = pass.s.world.nodes.find(name);
    const PluginInstallation& installation = pass.index.installation_of(a);
    const Operand* plugin = node == nullptr ? nullptr : installation.find(Component::plugin, *node);
    if (plugin == nullptr || a.is_contested()) continue;  // find_blocked() reports these.
    if (++shown > kMost) break;
    pass.finding(
        Severity::warning, node_ref(name), kDevicePluginConflict,
        fmt::format(
            "the device plugins of DaemonSet {} and of {} run on this node: the kubelet serves the devices of the "
            "one that registered last. The operator uses DaemonSet {}, which is recorded for the node. Exclude the "
            "node from the others with their nodeSelector, or delete them",
            k8s::to_string(plugin->key), a.other_plugins.view(), k8s::to_string(plugin->key)));
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

}  // namespace

namespace {

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

// One finding for each of the first nodes in `nodes`: the counts are in the status.
template <typename Report>
void report_first(const std::set<std::string>& nodes, const Report& report) {
  std::size_t reported = 0;
  for (const std::string& name : nodes) {
    if (reported >= kMost) return;
    if (report(name)) ++reported;
  }
}

// Where pods or ConfigMaps of the plugin's namespace have not been read, a pod that is missing in the view can run.
void find_drift(Pass& pass) {
  const Index& index = pass.index;
  report_first(index.nodes_in(Bucket::drifting), [&](const std::string& name) {
    const NodeAssessment& a = *index.find(name);
    if (!pass.plannable(a)) return false;
    pass.finding(Severity::warning, node_ref(name), a.labels_missing.empty() ? kDrift : kLabelsMissing, drift_text(a));
    return true;
  });
  report_first(index.nodes_in(Bucket::excused_drift), [&](const std::string& name) {
    const NodeAssessment& a = *index.find(name);
    if (!pass.plannable(a)) return false;
    if (const std::string_view why = excuse_of(a); !why.empty()) {
      pass.finding(
          Severity::warning, node_ref(name), why,
          fmt::format("does not show the profile that it runs, and is not repaired now: {}", shown_difference(a)));
      return true;
    }
    if (baseline_excuse(a) == kPreexistingDrift) return false;  // find_preexisting_drift() reports it.
    pass.finding(Severity::warning, node_ref(name), kUnproven,
                 fmt::format("{}; its pods are not restarted: they are older than the text, which they would load. "
                             "If that is wanted: `gpu-sharing-operator rollout start {} --adopt`",
                             shown_difference(a), a.policy.view()));
    return true;
  });
  report_first(index.nodes_in(Bucket::missing_devices), [&](const std::string& name) {
    pass.finding(Severity::warning, node_ref(name), kUnhealthyDevices, missing_devices_text(*index.find(name)));
    return true;
  });
}

// A start outside the order: the budgets and the canary did not apply to it, and it proves nothing for the revision.
void find_early_texts(Pass& pass) {
  const Index& index = pass.index;
  report_first(index.nodes_in(Bucket::early_text), [&](const std::string& name) {
    const NodeAssessment& a = *index.find(name);
    if (!pass.plannable(a)) return false;
    pass.finding(
        Severity::warning, node_ref(name), kLoadedUngated,
        fmt::format("shows {} ({}) before its change to it, outside the order of the rollout: {} for {}. Something "
                    "else made its pods read the edited text: its label was changed and changed back, or the plugin "
                    "got SIGHUP. It is no canary, and its pods are replaced in its turn",
                    a.target.view(), a.profile_ref.view(), a.early_text.view(), a.loaded.revision.view()));
    return true;
  });
}

// Nodes in a change whose new pods fail: named before verifyTimeout has passed. Nodes that stand half-way have a
// finding of their own (node_step.h).
void find_failing_pods(Pass& pass) {
  if (pass.rollouts == nullptr) return;
  std::map<std::string_view, const ChangeTrouble*> failing;
  for (const auto& [key, profile_rollout] : pass.index.profile_rollouts) {
    if (profile_rollout.tally.changing == 0) continue;
    for (const auto& [name, trouble] : rollout_of(pass, key).troubles()) {
      const bool fails = trouble.kind == ChangeTrouble::Kind::container;
      if (fails && pass.index.nodes_in(Bucket::changing).contains(name)) failing.emplace(name, &trouble);
    }
  }
  for (const auto& [name, trouble] : failing | std::views::take(kMost))
    pass.finding(Severity::warning, node_ref(std::string(name)), trouble->code, trouble->message);
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
      report_first(nodes, [&](const std::string& name) {
        pass.finding(Severity::warning, node_ref(name), reason, index.find(name)->obstacle.message);
        return true;
      });
    }
  }
}

void find_coming_breaks(Pass& pass) {
  report_first(pass.index.nodes_in(Bucket::would_break), [&](const std::string& name) {
    const NodeAssessment& a = *pass.index.find(name);
    if (!pass.plannable(a)) return false;  // Its ConfigMap has not been read yet, which is not "missing".
    // Preflight reports what is missing; if that is the ConfigMap, once for the ClusterPolicy.
    if (a.source == EffectiveKey::Source::error || a.would_break_by == kConfigMapMissing) return false;
    pass.finding(Severity::error, node_ref(name), kNodesWouldBreak, std::string(a.would_break.view()), {},
                 a.would_break_by);
    return true;
  });
}

void find_dropped_labels(Pass& pass) {
  report_first(pass.index.nodes_in(Bucket::unwritable), [&](const std::string& name) {
    for (const auto& [label, value] : pass.index.find(name)->expectation->dropped_labels) {
      pass.finding(Severity::warning, node_ref(name), kLabelDropped,
                   fmt::format("label {} is not written: \"{}\" is not a valid label value (63 characters at most). "
                               "Set a shorter name in the annotation {}",
                               label, shown_value(value), kDevicesAnnotation));
    }
    return true;
  });
}

void find_label_problems(Pass& pass) {
  report_first(pass.index.nodes_in(Bucket::label_problems), [&](const std::string& name) {
    const Node* node = pass.s.world.nodes.find(name);
    if (node == nullptr) return false;
    for (Reason& problem : label_problems(*node, *pass.index.find(name), pass.s.settings))
      pass.finding(Severity::warning, node_ref(name), problem.code, std::move(problem.message));
    return true;
  });
}

// Installations to which profiles do not apply, or that the operator does not recognize.
void find_other_providers(Pass& pass) {
  for (const auto& [key, cluster] : pass.s.world.gpu_clusters.all()) {
    pass.finding(
        Severity::warning, {"nvidia.com/v1alpha1", "GPUCluster", "", key.name, cluster->meta.uid}, kProviderUnsupported,
        "the DRA driver serves the GPUs: sharing by ConfigMap does not apply, and the operator does not change nodes "
        "of the GPU Operator. Configure MPS in the DeviceClass or ResourceClaim of the claims");
  }
  for (const std::string& complaint : pass.index.discovery.complaints) {
    pass.finding(Severity::warning, {"apps/v1", "DaemonSet", "", "", ""}, kProviderUnsupported, complaint);
  }
}

void find_preexisting_drift(Pass& pass) {
  if (!pass.index.record) return;
  report_first(pass.index.nodes_in(Bucket::drifted_at_install), [&](const std::string& name) {
    const NodeAssessment* a = pass.index.find(name);
    if (a == nullptr || !drifts(*a) || !pass.plannable(*a)) return false;
    pass.finding(Severity::warning, node_ref(name), kPreexistingDrift, shown_difference(*a));
    return true;
  });
}

}  // namespace

void plan_findings(Pass& pass) {
  report_unreadable_record(pass);
  find_held_policies(pass);
  find_unknown_times(pass);
  find_drift(pass);
  find_early_texts(pass);
  find_failing_pods(pass);
  plan_unclean_exits(pass);
  plan_conflicts(pass);
  plan_foreign_plugins(pass);
  plan_daemonset_findings(pass);
  plan_refused_selectors(pass);
  plan_selector_notes(pass);
  plan_double_offers(pass);
  find_wrong_keys(pass);
  find_blocked(pass);
  find_coming_breaks(pass);
  find_dropped_labels(pass);
  find_label_problems(pass);
  find_other_providers(pass);
  find_preexisting_drift(pass);
}

}  // namespace gso
