// The one command to continue with, for a node in its state.
#include "reconcilers/explain/commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <iterator>
#include <ranges>
#include <utility>

#include "reconcilers/checks/catalogue.h"
#include "reconcilers/checks/check.h"
#include "reconcilers/cluster/facts.h"
#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/cluster/plugin_settings.h"
#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/cluster/record_store.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/explain/revisions.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/node/node_patch.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/partitioning/partitioned_node.h"
#include "reconcilers/reasons/names.h"

namespace gso {

namespace {

// The key of the installation's ConfigMap that most of the nodes without a label have loaded: the default before it was
// changed. If that is unknown: the only key of the ConfigMap, or "KEY".
std::string previous_default(const World& world, const FleetIndex::Impl& index, std::size_t installation) {
  const PluginInstallation& of = index.discovery.installations[installation];
  const ConfigMap* config_map = world.configmaps.find(of.config_map_key());
  if (config_map == nullptr) return "KEY";
  const std::string prefix = of.config_map + "/";
  std::map<std::string, std::int64_t> loaded;
  for (const auto& [key, node] : world.nodes.all()) {
    const NodeAssessment* a = index.find(key.name);
    if (a == nullptr || a->installation != installation || !a->loaded.profile.view().starts_with(prefix)) continue;
    const Operand* plugin = of.find(Component::plugin, *node);
    if (plugin == nullptr || node->meta.labels.contains(plugin->node_label)) continue;
    std::string name(a->loaded.profile.view().substr(prefix.size()));
    if (config_map->data.contains(name)) ++loaded[std::move(name)];
  }
  const auto most = std::ranges::max_element(loaded, {}, [](const auto& entry) { return entry.second; });
  if (most != loaded.end()) return most->first;
  return config_map->data.size() == 1 ? config_map->data.begin()->first : "KEY";
}

Command annotate_node_command(std::string_view node, std::string_view annotation, std::string comment = {}) {
  return {fmt::format("kubectl annotate node {} {}-", node, annotation), std::move(comment), Command::Does::changes,
          std::string(node)};
}

// {node}, {namespace} and {configmap} of the plugin, {label}: the label by which its nodes choose a key, {policy}.
Command filled(const FleetIndex::Impl& index, const Node& node, const NodeAssessment& a, std::string_view pattern,
               std::string comment = {}) {
  const PluginInstallation& installation = index.installation_of(a);
  return {fmt::format(fmt::runtime(pattern), fmt::arg("node", shell_word(node.meta.name)),
                      fmt::arg("namespace", shell_word(installation.ns)),
                      fmt::arg("configmap", shell_word(installation.config_map)),
                      fmt::arg("policy", shell_word(a.policy.view())),
                      fmt::arg("label", shell_word(config_label(installation, node)))),
          std::move(comment), Command::Does::shows, pattern.contains("{node}") ? node.meta.name : std::string()};
}

// MPS cannot work on this node: its profile is chosen anew, by whoever chose it. Labels are shown and not written:
// another value restarts the node's plugin, and a person or a tool has set the present one.
Command choose_another(const World& world, const FleetIndex::Impl& index, const Node& node, const NodeAssessment& a) {
  const SharingPolicy* policy = world.policies.find(a.policy.view());
  if (policy != nullptr && (policy->inline_profile || policy->config_map_key))
    return edit_policy_command(a.policy.view());
  return a.source == EffectiveKey::Source::label
             ? filled(index, node, a, "kubectl get node {node} --label-columns {label}")
             : edit_config_map_command(index.installation_of(a).config_map_key());
}

// The label of the node names no key. Whoever set it decides which key it names, or that it goes: it is shown and not
// written.
Command correct_label(const World& world, const FleetIndex::Impl& index, const Node& node, const NodeAssessment& a) {
  const PluginInstallation& installation = index.installation_of(a);
  std::vector<std::string> keys;
  if (const ConfigMap* config_map = world.configmaps.find(installation.config_map_key()))
    for (const auto& [key, text] : config_map->data) keys.push_back(shown_value(key));
  return filled(index, node, a, "kubectl get node {node} --show-managed-fields --output yaml",
                fmt::format("names who set label {1}; whoever did decides: name a key that exists ({2}), or remove the "
                            "label: kubectl label node {0} {1}-",
                            node.meta.name, config_label(installation, node), first_names(keys)));
}

Command correct_invalid(const World& world, const FleetIndex::Impl& index, const NodeAssessment& a) {
  const SharingPolicy* policy = world.policies.find(a.policy.view());
  if (policy != nullptr && (policy->inline_profile || a.wrong_key)) return edit_policy_command(a.policy.view());
  const ObjectKey key = index.installation_of(a).config_map_key();
  const ConfigMap* config_map = world.configmaps.find(key);
  // Its plugin finds no default key: the setting that holds it is wrong, and not the ConfigMap.
  const std::string_view check = a.blocked_by == nullptr ? std::string_view() : a.blocked_by->code;
  if (config_map != nullptr && (check == kDefaultKeyNotFound || check == kDefaultMissing))
    return default_key_command(world, index, a);
  if (config_map != nullptr && !config_map->data.contains(std::string(a.key.view())))
    return edit_config_map_command(key);
  return correct_key_command(world, index, key);
}

Command log_command(const Pod& pod, const ContainerStatus& container) {
  return {fmt::format("kubectl logs {} --namespace {} --container {} --previous", pod.meta.name, pod.meta.ns.view(),
                      container.name.view())};
}

// The first answer about a pod of the node's operands; empty: there is none.
template <class Answer>
Command of_first_pod(const FleetIndex::Impl& index, const Node& node, const NodeAssessment& a, Answer answer) {
  const NodePods pods = sort_pods(index.installation_of(a), index.pods_of(node.meta.name));
  for (const Component component : {Component::plugin, Component::gfd, Component::mps}) {
    for (const Pod* pod : pods.of(component))
      if (Command out = answer(*pod); !out.empty()) return out;
  }
  return {};
}

// How to read why an operand of the node ends again and again; empty: none does.
Command crash_log(const FleetIndex::Impl& index, const Node& node, const NodeAssessment& a) {
  return of_first_pod(index, node, a, [](const Pod& pod) -> Command {
    for (const ContainerStatus* container : pod.all_containers())
      if (waiting_for(container->waiting_reason.view()) == Waiting::crashes) return log_command(pod, *container);
    return {};
  });
}

// The policy of the node has no object, and its recorded stop keeps the node from its change.
bool is_stopped_by_gone_policy(const World& world, const FleetIndex::Impl& index, std::string_view policy) {
  return index.record && policy_is_gone(world, index, policy) &&
         has_recorded_stop(*index.record, index.held_policies.at(std::string(policy)));
}

}  // namespace

Command default_key_command(const World& world, const FleetIndex::Impl& index, const NodeAssessment& a) {
  const PluginInstallation& installation = index.installation_of(a);
  const Operand* plugin = first_plugin(installation);
  const bool has_loaded = !a.loaded.revision.empty() && a.loaded.revision != kInvalidRevision;
  // The node has loaded that very key: the ConfigMap has lost it.
  if (has_loaded && plugin != nullptr &&
      a.loaded.profile == fmt::format("{}/{}", installation.config_map, plugin->default_key))
    return correct_key_command(world, index, installation.config_map_key());
  return changing(set_default_key_command(installation, previous_default(world, index, a.installation)));
}

Command announced_default_command(const FleetIndex::Impl& index, const NodeAssessment& a) {
  const PluginInstallation& installation = index.installation_of(a);
  const Operand* plugin = first_plugin(installation);
  const bool is_loss = a.would_shrink || !a.would_break.empty();
  if (!is_loss || !installation.announced || plugin == nullptr) return {};
  if (installation.announced_config_map != installation.config_map ||
      installation.announced_default == plugin->default_key)
    return {};
  return changing(set_default_key_command(installation, plugin->default_key));
}

namespace {

// Creates a ConfigMap that does not exist, with the keys that the plugin or its nodes name: the default, and labels.
Command create_command(const World& world, const FleetIndex::Impl& index, const ObjectKey& config_map) {
  std::set<std::string> keys;
  for (const PluginInstallation& installation : index.discovery.installations) {
    const Operand* plugin = installation.config_map_key() == config_map ? first_plugin(installation) : nullptr;
    if (plugin != nullptr && !plugin->default_key.empty()) keys.insert(plugin->default_key);
  }
  for (const auto& [key, node] : world.nodes.all()) {
    const NodeAssessment* a = index.find(key.name);
    if (a == nullptr || index.installation_of(*a).config_map_key() != config_map) continue;
    const auto named = node->meta.labels.get(config_label(index.installation_of(*a), *node));
    if (named && !named->empty()) keys.emplace(*named);
  }
  if (keys.empty()) keys.insert("KEY");
  std::string out = fmt::format("kubectl create configmap {} --namespace {}", config_map.name, config_map.ns);
  for (const std::string& key : keys) out += fmt::format(" --from-file={0}={0}.yaml", key);
  const std::string id = k8s::to_string(config_map);
  const auto has_text = [&](const std::string& key) { return has_earlier_text(world, index, id, key); };
  const auto recorded = world.policies_served ? std::ranges::count_if(keys, has_text) : 0;
  std::string_view text;
  if (recorded == 1) text = "; `gpu-sharing-operator rollout undo` prints the recorded text";
  if (recorded > 1) text = "; `gpu-sharing-operator rollout history NAME` prints the text of a rollout";
  return changing(std::move(out), fmt::format("with the profile of each key in its file{}", text));
}

}  // namespace

Command correct_key_command(const World& world, const FleetIndex::Impl& index, const ObjectKey& config_map) {
  if (world.unsynced_namespaces.contains(config_map.ns))
    return {fmt::format("kubectl get configmap {} --namespace {}", config_map.name, config_map.ns)};
  if (world.configmaps.find(config_map) == nullptr) return create_command(world, index, config_map);
  const std::string id = k8s::to_string(config_map);
  const bool restores = std::ranges::any_of(index.profile_rollouts, [&](const auto& entry) {
    const RolloutKey& in_use = entry.first;
    if (!world.policies_served || in_use.config_map != id || is_managed_key(in_use.key)) return false;
    const std::string present = present_revision(world, index, id, in_use.key);
    const bool is_wrong = present.empty() || present == kInvalidRevision;
    return is_wrong && has_earlier_text(world, index, id, in_use.key);
  });
  return edit_config_map_command(
      config_map, restores ? "or restore the text that was verified last, after a look: gpu-sharing-operator rollout "
                             "undo --dry-run"
                           : "");
}

namespace {

// For a node that failed: how its container ended, or else the first of its pods that is not Ready. Empty: all serve.
Command failed_pod_command(const FleetIndex::Impl& index, const Node& node, const NodeAssessment& a) {
  if (Command log = crash_log(index, node, a); !log.empty()) return log;
  return of_first_pod(index, node, a, [](const Pod& pod) -> Command {
    if (is_serving(pod) || pod.meta.deletion_timestamp) return {};
    for (const ContainerStatus* container : pod.all_containers())
      if (!container->ready && container->restarts > 0) return log_command(pod, *container);
    return describe_pod_command(pod.meta.key());
  });
}

bool a_label_differs(const Node& node, const NodeAssessment& a) {
  return a.expectation != nullptr && std::ranges::any_of(a.expectation->labels, [&](const auto& expected) {
           return node.meta.labels.get(expected.first).value_or("") != expected.second;
         });
}

}  // namespace

Command writer_log_command(const FleetIndex::Impl& index, const Node& node, const NodeAssessment& a) {
  if (a.matches() || a.expectation == nullptr) return {};
  const Component component = a_label_differs(node, a) ? Component::gfd : Component::plugin;
  const NodePods pods = sort_pods(index.installation_of(a), index.pods_of(node.meta.name));
  const std::vector<const Pod*>& writers = pods.of(component);
  if (writers.empty()) return {};
  const Pod& pod = *writers.front();
  // A pod that the change has yet to replace shows the former profile, as it should.
  const bool is_replaced =
      !a.change || !a.change->pods.contains(component) || !a.change->pods.at(component).contains(pod.meta.uid);
  if (!is_replaced) return {};
  return {fmt::format("kubectl logs {} --namespace {} --all-containers", pod.meta.name, pod.meta.ns.view())};
}

Command command_of_reason(const ReadingPass& pass, const Node& node, const NodeAssessment& a, std::string_view reason) {
  if (reason == kForbidden) return upgrade_chart_command(pass.world(), pass.settings(), "--set eviction.enabled=true");
  if (reason == kDeferred) return start_command(a.policy.view());
  const CodeRow* known = find_blocked_reason(reason);
  if (known == nullptr || known->command.empty()) return {};
  return filled(pass.index(), node, a, known->command);
}

Command trouble_command(const ReadingPass& pass, const Node& node, const NodeAssessment& a, const Reason& why) {
  if (why.code == kHeld) return {};  // hold_text()
  if (!node.ready) return describe_node_command(node.meta.name);
  Command command = crash_log(pass.index(), node, a);
  if (command.empty() && is_about_pods(why.code)) command = advice_on_pods(pass, node, a, why).next();
  if (command.empty()) command = command_of_reason(pass, node, a, why.code);
  if (command.empty() && a.phase == Phase::failed) command = failed_pod_command(pass.index(), node, a);
  return command.empty() && a.phase == Phase::failed ? explain_command(node.meta.name) : command;
}

std::optional<Reason> obstacle_of(const NodeAssessment& a) {
  if (a.setup != nullptr) {
    for (const Diagnostic& d : *a.setup) {
      const Check* check = d.severity == Severity::error ? find_check(d.code) : nullptr;
      if (check != nullptr && !check->blocks.empty()) return Reason{std::string(check->blocks), d.message};
    }
  }
  if (!a.taint.empty())
    return Reason{std::string(kTaintNotTolerated), fmt::format("the node has the taint {}", a.taint.view())};
  if (!a.reload_obstacle.empty()) return Reason{{}, std::string(a.reload_obstacle.view())};
  return std::nullopt;
}

namespace {

// Ends what keeps the node from its change; empty: the reason has no command.
Command obstacle_command(const ReadingPass& pass, const Node& node, const NodeAssessment& a, std::string_view reason) {
  if (reason == kMigEnabled || reason == kMpsByLabelUnsupported)
    return choose_another(pass.world(), pass.index(), node, a);
  if (reason == kConfigInvalid) return correct_invalid(pass.world(), pass.index(), a);
  if (reason == kTaintNotTolerated) return describe_node_command(node.meta.name);
  if (reason == kChangeUnreadable)
    return annotate_node_command(node.meta.name, kChangeAnnotation,
                                 "if no change is in progress there; then uncordon the node if it is still cordoned");
  if (reason == kOwnedUnreadable) return annotate_node_command(node.meta.name, kOwnedAnnotation);
  if (reason == kDeferralUnreadable) return annotate_node_command(node.meta.name, kDeferredAnnotation);
  return command_of_reason(pass, node, a, reason);
}

// Of a node that does not show the profile that it should run, or might not run it: what would keep its pods from
// serving comes before any restart. Empty: nothing would.
Command before_a_restart(const ReadingPass& pass, const Node& node, const NodeAssessment& a) {
  const std::optional<Reason> obstacle = obstacle_of(a);
  if (!obstacle || obstacle->code.empty()) return {};
  Command command = obstacle_command(pass, node, a, obstacle->code);
  return command.empty() ? filled(pass.index(), node, a, "kubectl get daemonsets --namespace {namespace} -o wide")
                         : std::move(command);
}

// The policy that governs the object; null: none is known.
const SharingPolicy* policy_of(const World& world, const FleetIndex::Impl& index, const ObjectRef& object) {
  const NodeAssessment* a = object.kind == "Node" ? index.find(object.name) : nullptr;
  const SharingRollout* rollout = object.kind == "SharingRollout" ? world.rollouts.find(object.name) : nullptr;
  std::string_view policy = object.kind == "SharingPolicy" ? std::string_view(object.name) : std::string_view();
  if (a != nullptr) policy = a->policy.view();
  if (rollout != nullptr) policy = rollout->policy;
  return policy.empty() ? nullptr : &index.policy(world, policy);
}

}  // namespace

std::string_view remedy_here(const World& world, const FleetIndex::Impl& index, std::string_view reason,
                             const ObjectRef& object) {
  const SharingPolicy* policy = reason == kWaitingForWorkloads ? policy_of(world, index, object) : nullptr;
  if (policy == nullptr || policy->rollout.workloads != WorkloadMode::evict) return remedy_of(reason);
  return policy->rollout.evict_bare_pods
             ? "wait, delete the pods, or set `workloads: Interrupt`"
             : "wait, delete the pods, or set `workloads: Interrupt`, or for pods without a controller "
               "`rollout.evictBarePods: true`";
}

std::string name_nodes_in(std::string text, const std::vector<std::string>& nodes) {
  constexpr std::string_view kAnyNode = "NODE";
  if (nodes.empty()) return text;
  const std::string names = fmt::format("{}", fmt::join(nodes | std::views::take(kMostNames), " "));
  bool replaced = false;
  const auto replace_behind = [&](std::string_view before) {
    const std::string placeholder = fmt::format("{}{}", before, kAnyNode);
    for (std::size_t at = 0; (at = text.find(placeholder, at)) != std::string::npos; replaced = true) {
      text.replace(at + before.size(), kAnyNode.size(), names);
      at += before.size() + names.size();
    }
  };
  replace_behind(" node ");
  replace_behind(" uncordon ");
  if (nodes.size() == 1) replace_behind("-for-");  // The name of an object: there is one for each node.
  if (replaced && nodes.size() > kMostNames)
    text += fmt::format(" (the same for {})", counted(nodes.size() - kMostNames, "more node"));
  return text;
}

namespace {

// The labels or the annotations of the node, whichever hold it.
const k8s::StringMap& held_by(const Node& node) {
  return is_switched_on(node.meta.annotations.get(kHoldAnnotation)) ? node.meta.annotations : node.meta.labels;
}

}  // namespace

Command lift_hold_command(const Node& node) {
  if (!is_held(node)) return {};
  const bool by_label = &held_by(node) == &node.meta.labels;
  return {fmt::format("kubectl {} node {} {}-", by_label ? "label" : "annotate", node.meta.name, kHoldAnnotation),
          {},
          Command::Does::changes,
          node.meta.name};
}

std::string hold_text(const Node& node) {
  if (!is_held(node)) return {};
  return fmt::format("{} by {}={}: whoever set it can lift it with {}", node.meta.name, hold_of(node),
                     shown_value(held_by(node).get(kHoldAnnotation).value_or("")), lift_hold_command(node).line);
}

std::string hold_remedy(const Node& node, const NodeAssessment& a) {
  if (a.in_change())
    return "the change of the node waits for the end of the hold, and no new pod gets its GPUs before: whoever set the "
           "hold removes it";
  return "no action needed: whoever set the hold removes it when the operator is allowed to change the node: " +
         lift_hold_command(node).line;
}

namespace {

// Shows that something of the plugin's namespace is not allowed to be read: the first of what was not, with the others.
Command missing_permission_command(const World& world, const std::string& ns) {
  static const std::set<std::string> kAll{"configmaps", "controllerrevisions.apps", "pods"};
  const auto known = world.unread_resources.find(ns);
  const std::set<std::string>& unread = known == world.unread_resources.end() ? kAll : known->second;
  const std::vector<std::string> others(std::next(unread.begin()), unread.end());
  return {fmt::format("kubectl auth can-i list {} --namespace {}", *unread.begin(), ns),
          others.empty() ? std::string() : fmt::format("and {}", fmt::join(others, ", "))};
}

// Of a node that no plugin of the operator's serves.
Command step_without_plugin(const World& world, const Node& node) {
  if (is_partitioned_by_nos(node) || hami_plugin_on(hami_plugins(world), node) != nullptr) return {};
  const std::optional<ObjectKey> cloud = cloud_plugin_on(world, node);
  if (!cloud) return {"kubectl get daemonsets --all-namespaces -o wide"};
  if (serves_gpus(node)) return {};
  return {fmt::format("kubectl get pods --namespace {} --field-selector spec.nodeName={}", cloud->ns, node.meta.name)};
}

}  // namespace

Command slices_command(const World& world, const FleetIndex::Impl& index, const std::vector<Finding>& findings,
                       const std::function<bool(const Node&)>& concerns) {
  static constexpr std::array kOfNodes{kPartitioningSkipped, kPartitioningUnconfirmed, kPartitioningRolledBack,
                                       kPartitioningNeedsFork, kPartitioningReportStale};
  const Node* of = nullptr;
  const auto found = std::ranges::find_if(findings, [&](const Finding& finding) {
    of = finding.object.kind == "Node" ? world.nodes.find(finding.object.name) : nullptr;
    return of != nullptr && std::ranges::find(kOfNodes, finding.why.code) != kOfNodes.end() && concerns(*of);
  });
  if (found == findings.end()) return {};
  const std::string& code = found->why.code;
  const bool of_agent = code == kPartitioningReportStale;
  const auto& [installation, plugin, selected] = nos_plugin_of(index.discovery, *of);
  if (!of_agent && code != kPartitioningUnconfirmed && code != kPartitioningRolledBack) {
    const ObjectKey map = installation == nullptr ? ObjectKey() : installation->config_map_key();
    const ConfigMap* there = world.configmaps.find(map);
    const bool is_usable =
        there != nullptr && !there->immutable && !is_switched_on(there->meta.annotations.get(kPausedAnnotation));
    if (map.name.empty() || is_usable) return describe_node_command(of->meta.name);
    return {fmt::format("kubectl get configmap {} --namespace {} --output yaml", map.name, map.ns)};
  }
  for (const auto& [key, pod] : world.partitioning.pods.all()) {
    const bool owned = plugin != nullptr && std::ranges::any_of(pod->meta.owners, [&](const auto& owner) {
                         return owner.uid.view() == plugin->uid;
                       });
    if (pod->node_name.view() != of->meta.name || !(of_agent ? static_cast<bool>(pod->agent) : owned)) continue;
    return {fmt::format("kubectl logs {} --namespace {}{}", key.name, key.ns,
                        of_agent ? " --previous" : " --all-containers")};
  }
  return {fmt::format("kubectl get pods --all-namespaces --field-selector spec.nodeName={}", of->meta.name),
          of_agent ? "nos's gpu-agent should be among them" : "nos's device plugin should be among them"};
}

Command next_step(const ReadingPass& pass, const Node& node, const NodeAssessment* a, std::string_view state) {
  const World& world = pass.world();
  const Index& index = pass.index();
  if (a == nullptr) return step_without_plugin(world, node);
  if (state == kUnknown && record_unread(world, pass.settings()))
    return {fmt::format("kubectl auth can-i list configmaps --namespace {}", pass.settings().operator_namespace),
            "of the operator's record"};
  if (state == kUnknown) return missing_permission_command(world, index.installation_of(*a).ns);
  if (a->phase == Phase::unmanaged) {  // Its plugin has no profiles.
    const PluginInstallation& installation = index.installation_of(*a);
    return changing(set_config_map_command(installation, installation.find(Component::plugin, node)));
  }
  if (!node.ready) return describe_node_command(node.meta.name);
  if (a->has_unknown_label()) return correct_label(world, index, node, *a);
  // A hold is lifted last: the obstacle remains without it.
  const std::string_view shown = shown_reason(*a);
  const std::string_view reason = shown.empty() && a->is_held() ? a->holder : shown;
  // Whoever set the hold decides when it ends: hold_remedy(). Mid-change the node serves nobody until then.
  if (reason == kHeld) return a->in_change() ? lift_hold_command(node) : Command();
  if (Command command = obstacle_command(pass, node, *a, reason); !command.empty()) return command;
  const bool adoptable = state == kPreexistingDrift || state == kUnproven;
  const bool breaks_by_label = state == kNodesWouldBreak && a->would_break_by == kMpsByLabelUnsupported;
  if (adoptable || state == kDrift || breaks_by_label) {
    if (Command command = before_a_restart(pass, node, *a); !command.empty()) return command;
  }
  // A retry of what crashes fails again.
  const bool failed = a->phase == Phase::failed;
  if (Command pod = failed ? failed_pod_command(index, node, *a) : crash_log(index, node, *a); !pod.empty()) return pod;
  const bool deferred = a->phase == Phase::pending && index.nodes_in(Bucket::deferred).contains(node.meta.name);
  if (failed || deferred) return start_command(a->policy.view());
  if (a->phase == Phase::pending && !world.policies_served && is_stopped_by_gone_policy(world, index, a->policy.view()))
    return install_crds_command();
  if (a->phase == Phase::pending || a->in_change()) return rollout_status_command();
  if (Command command = announced_default_command(index, *a); !command.empty()) return command;
  // A pod that does not serve is the cause, and fails again after a restart.
  if (!a->matches()) {
    if (Command pod = failed_pod_command(index, node, *a); !pod.empty()) return pod;
  }
  if (adoptable && world.policies_served && !obstacle_of(*a)) return adopt_command(a->policy.view());
  // Its pods serve: another client can have written the label.
  if (state == kDrift && a->pods_ready && a_label_differs(node, *a)) {
    return filled(
        index, node, *a, "kubectl get node {node} --show-managed-fields --output yaml",
        "names who wrote the labels that differ; if that lasts for verifyTimeout, the operator restarts the node's "
        "pods of the device plugin, GFD and MPS");
  }
  if (adoptable || !a->matches())
    return filled(index, node, *a,
                  "kubectl get pods --namespace {namespace} --field-selector spec.nodeName={node} -o wide");
  // The node serves its own key, and the next start of its plugin begins with the default.
  const bool wrong_default =
      a->setup != nullptr && std::ranges::find(*a->setup, kDefaultInvalid, &Diagnostic::code) != a->setup->end();
  return wrong_default ? correct_key_command(world, index, index.installation_of(*a).config_map_key()) : Command();
}

}  // namespace gso
