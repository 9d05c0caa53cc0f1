// One node: its policy, who owns its label, and who else uses its GPUs.
#include <string>

#include <fmt/format.h>

#include "reconcilers/checks/check_functions.h"
#include "reconcilers/checks/kai_rule.h"
#include "reconcilers/cluster/config_map_room.h"
#include "reconcilers/cluster/dra_offers.h"
#include "reconcilers/cluster/facts.h"
#include "reconcilers/cluster/label_owners.h"
#include "reconcilers/cluster/plugin_settings.h"
#include "reconcilers/cluster/policy_keys.h"
#include "reconcilers/model/foreign_text.h"
#include "reconcilers/model/labels.h"

namespace gso::check {
namespace {

// The policy's own key is not written into the ConfigMap yet.
bool adds_key(const NodeSetup& setup) {
  return !setup.managed_key.empty() && setup.config_map != nullptr &&
         !setup.config_map->data.contains(std::string(setup.managed_key));
}

std::string_view policy_name(const NodeSetup& setup) {
  return setup.policy == nullptr ? std::string_view() : setup.policy->meta.name;
}

}  // namespace

Complaints device_plugin_conflict(const NodeSetup& setup) {
  if (setup.claimants.empty()) return {};
  return {
      {"", fmt::format("the device plugins of DaemonSets {} are for this node, and none of them is recorded for it: "
                       "the operator changes nothing there and records nothing. Exclude the node from all but one "
                       "with their nodeSelector, delete the others, or name only the right namespace in the chart "
                       "value operandNamespaces (--operand-namespaces)",
                       setup.claimants)}};
}

Complaints policy_key_not_found(const NodeSetup& setup) {
  if (setup.policy_key_problem.empty()) return {};
  return {{"", std::string(setup.policy_key_problem)}};
}

// The policy's key would be a second key, and nodes resolve to the only key.
Complaints single_key_in_use(const NodeSetup& setup) {
  if (!adds_key(setup) || !relies_on_single_key(setup.setup.installation, *setup.config_map)) return {};
  return {{"", fmt::format("ConfigMap {} has one key, {}, which nodes get by the fallback \"single\": if policy {} "
                           "added a second key, these nodes would have no key. Set {} to the existing key",
                           setup.setup.installation.id(), setup.config_map->data.begin()->first, policy_name(setup),
                           default_key_setting(setup.setup.installation))}};
}

Complaints taint_not_tolerated(const NodeSetup& setup) {
  if (setup.taint.empty()) return {};
  const bool of_operator = setup.setup.installation.provider == Provider::gpu_operator;
  return {{"", fmt::format("the node has the taint {}: a pod that is deleted on it would not start again. Remove the "
                           "taint, or add a toleration to the DaemonSet{}",
                           setup.taint, of_operator ? " (spec.daemonsets.tolerations of the ClusterPolicy)" : "")}};
}

Complaints label_owned_by_other(const NodeSetup& setup) {
  const std::string& label = setup.setup.plugin.node_label;
  const bool foreign = setup.label && is_label_of_others(setup.node, label);
  if (!foreign || (setup.policy != nullptr && setup.policy->takeover)) return {};
  return {
      {"",
       fmt::format(
           "the label {}={} was set by a person, or left by a policy with deletionPolicy Retain; policy {} wants {}. "
           "Remove the label, or set spec.takeover",
           label, shown_value(setup.node.meta.labels.get(label).value_or("")), policy_name(setup), *setup.label)}};
}

Complaints config_map_immutable(const NodeSetup& setup) {
  if (!adds_key(setup) || !setup.config_map->immutable) return {};
  return {{"", fmt::format("ConfigMap {} is immutable: key {} of policy {} cannot be added to it",
                           setup.setup.installation.id(), setup.managed_key, policy_name(setup))}};
}

Complaints config_map_full(const NodeSetup& setup) {
  if (!adds_key(setup) || setup.policy == nullptr || !setup.policy->inline_profile) return {};
  if (has_room(*setup.config_map, setup.managed_key, inline_profile_text(*setup.policy->inline_profile))) return {};
  return {
      {"", fmt::format("ConfigMap {} has no room for key {} of policy {} (1 MiB in all): remove keys that nobody uses, "
                       "or use an existing key (spec.profile.configMapKey)",
                       setup.setup.installation.id(), setup.managed_key, policy_name(setup))}};
}

Complaints kai_reservations(const NodeSetup& setup) {
  if (!excludes_kai(setup.setup.valid_profile()) || setup.use == nullptr || setup.use->kai.empty()) return {};
  return {{"", fmt::format("KAI shares GPUs of this node ({}), and profile {} shares them by replicas: the two cannot "
                           "be combined. Drain the fraction pods, or keep KAI off the node",
                           setup.use->kai, setup.setup.key.key)}};
}

// While nothing is allocatable, as in every restart of the plugin, the scheduler allocates the GPUs by claims.
Complaints dra_double_offer(const NodeSetup& setup) {
  if (setup.use == nullptr || setup.use->device_class.empty()) return {};
  return {{"", double_offer(setup.use->device_class)}};
}

// Its group, and with it its budget and canary, is temporarily unknown (NFD restarts, GFD's file mode), and so is
// whether it shows its profile. A broken node is repaired without labels, unless a policy selects by them: the policy
// that governs the node meanwhile might have another mode.
Complaints labels_missing(const NodeSetup& setup) {
  const Operand* gfd = setup.setup.any_gfd();
  const bool restarts = setup.starts || setup.reloads;
  if (!restarts || gfd == nullptr || setup.node.meta.labels.contains(kGpuProduct)) return {};
  const bool out_of_service = !setup.node.ready || setup.node.unschedulable;
  const bool broken = !serves_gpus(setup.node) || (setup.starts && out_of_service);
  if (broken && setup.awaited_by == nullptr) return {};
  const std::string unknown =
      setup.awaited_by == nullptr
          ? std::string("the group of the node is unknown")
          : fmt::format("it is unknown whether policy {}, which selects by such labels, governs the node",
                        setup.awaited_by->meta.name);
  return {{"", fmt::format("DaemonSet {} selects the node, but the label {} is missing: {}. Check the pods of GPU "
                           "Feature Discovery and Node Feature Discovery",
                           k8s::to_string(gfd->key), kGpuProduct, unknown)}};
}

}  // namespace gso::check
