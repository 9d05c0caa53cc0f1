// A node: which key it gets and what that holds, the profile against its GPUs, its policy, who owns its label, and who
// else uses its GPUs.
#include <string>
#include <utility>

#include <fmt/format.h>

#include "reconcilers/checks/check_functions.h"
#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/facts.h"
#include "reconcilers/cluster/label_owners.h"
#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/cluster/plugin_settings.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/profile/expected.h"
#include "reconcilers/profile/mps.h"

namespace gso::check {
namespace {

// --- The key.

using Source = EffectiveKey::Source;

std::string sentence(const std::string& text) {
  return text.ends_with('.') ? text : text + ".";
}

bool has_key_error(const Setup& setup) {
  return setup.config_map_exists && setup.profile == nullptr && setup.key.source == Source::error;
}

// Why no default resolves, for a node without a label and for one whose pods load the default before the label's key:
// with releases that do so it is one problem, with one sentence. Empty if one resolves.
std::string default_error(const Setup& setup) {
  const bool unlabelled = has_key_error(setup) && !setup.labelled;
  const bool starts_without =
      setup.valid_profile() != nullptr && setup.start != nullptr && setup.start->source == Source::error;
  if (!unlabelled && !starts_without) return {};
  std::string out = fmt::format("ConfigMap {}: {}", shown_value(setup.installation.id()),
                                unlabelled ? setup.key.error : setup.start->error);
  if (setup.plugin.version.known_below(0, 18, 2)) return out;
  return fmt::format(
      "{} Plugin {} needs a default key even on a labelled node: its init container does not see the label, and the "
      "next restart of a pod leaves the node without GPUs",
      sentence(out), setup.plugin.version.to_string());
}

// --- The GPUs.

// The node's expectation under the profile; nullopt if the profile is invalid.
std::optional<Expectation> expectation_of(const Setup& setup) {
  if (setup.valid_profile() == nullptr) return std::nullopt;
  return expected_state(setup.effective_profile(), devices_of(*setup.gpus));
}

std::string_view section_of(const Profile& profile) {
  return profile.mps ? "sharing.mps" : "sharing.timeSlicing";
}

Complaint useless_entry(const Profile& profile, std::size_t index) {
  return {fmt::format("{}.resources[{}].name", section_of(profile), index),
          fmt::format("no device of this node is a {}, so the entry has no effect on this node",
                      profile.active()->resources[index].name)};
}

// Entries for MIG profiles that GFD's labels do not show.
Complaints useless_mig_entries(const Setup& setup, const Profile& profile) {
  Complaints out;
  const auto& shown = setup.gpus->mig_counts;
  if (shown.empty() || setup.mig_strategy() != "mixed" || profile.mps) return out;
  for (std::size_t i = 0; i < profile.active()->resources.size(); ++i) {
    const std::string& name = profile.active()->resources[i].name;
    if (name.starts_with("nvidia.com/mig-") && !shown.contains(name)) out.push_back(useless_entry(profile, i));
  }
  return out;
}

// --- The node and its policy.

// The policy's own key is not written into the ConfigMap yet.
bool adds_key(const NodeSetup& setup) {
  return !setup.managed_key.empty() && setup.config_map != nullptr &&
         !setup.config_map->data.contains(std::string(setup.managed_key));
}

std::string_view policy_name(const NodeSetup& setup) {
  return setup.policy == nullptr ? std::string_view() : setup.policy->meta.name;
}

}  // namespace

// --- The key.

Complaints config_map_missing(const Setup& setup) {
  if (setup.config_map_exists || setup.key.source != Source::error) return {};
  return {{"", setup.key.error}};
}

Complaints key_not_found(const Setup& setup) {
  if (!has_key_error(setup) || !setup.labelled) return {};
  const std::string where = fmt::format("ConfigMap {}: {}", shown_value(setup.installation.id()), setup.key.error);
  const std::string advice =
      setup.label_left
          ? fmt::format(
                "Remove the label {}: the operator generated that key for an inline profile that no policy of "
                "the node has any more",
                setup.plugin.node_label)
          : fmt::format("Correct the label {} (or the policy that sets it), or add the key", setup.plugin.node_label);
  return {{"", fmt::format("{} Pods that start there crash-loop; those that run keep what they have loaded. {}",
                           sentence(where), advice)}};
}

Complaints default_key_not_found(const Setup& setup) {
  if (setup.plugin.default_key.empty()) return {};
  const std::string error = default_error(setup);
  if (error.empty()) return {};
  return {{"", fmt::format("{} Set {} to a key that exists, or add the key", sentence(error),
                           default_key_setting(setup.installation))}};
}

Complaints default_missing(const Setup& setup) {
  if (!setup.plugin.default_key.empty()) return {};
  const std::string error = default_error(setup);
  if (error.empty()) return {};
  const bool label_helps = setup.start == nullptr && setup.plugin.version.known_below(0, 18, 2);
  return {{"", fmt::format("{} Set {}, or allow the fallback \"empty\"{}", sentence(error),
                           default_key_setting(setup.installation),
                           label_helps ? fmt::format(", or label the node {}=<key>", setup.plugin.node_label) : "")}};
}

Complaints default_invalid(const Setup& setup) {
  const bool wrong = setup.valid_profile() != nullptr && setup.start != nullptr && setup.start_profile != nullptr &&
                     !setup.start_profile->valid;
  if (!wrong) return {};
  const std::string brief = fmt::format(
      "the default key \"{}\" of ConfigMap {} has an error, and plugin {} loads it first at every start, even on a "
      "labelled node",
      shown_value(setup.start->key), shown_value(setup.installation.id()), setup.plugin.version.to_string());
  return {{.path = "",
           .message = fmt::format("{}: {}", brief, setup.start_profile->error),
           .brief = brief + "; ConfigInvalid names the error"}};
}

Complaints config_invalid(const Setup& setup) {
  if (setup.profile == nullptr || setup.profile->valid) return {};
  return {{"", fmt::format("{} key {}: {}", shown_value(setup.installation.id()), shown_value(setup.key.key),
                           setup.profile->error)}};
}

// Errors in parts of the document that no component on this node reads.
Complaints setting_overridden(const Setup& setup) {
  Complaints out;
  if (setup.valid_profile() == nullptr) return out;
  for (const Diagnostic& d : setup.profile->parsed.diagnostics) {
    if (d.severity != Severity::error || !setup.profile->overridden.contains(d.code)) continue;
    out.push_back({d.path, fmt::format("wrong value in key \"{}\" of ConfigMap {}, without effect on this node: the "
                                       "DaemonSet's own setting overrides it; correct the value anyway",
                                       shown_value(setup.key.key), shown_value(setup.installation.id()))});
  }
  return out;
}

// --- The GPUs.

// A person wrote it because the labels do not describe the GPUs: without it, a change could not be verified.
Complaints devices_unreadable(const Setup& setup) {
  if (setup.gpus->problem.empty()) return {};
  return {
      {"", fmt::format("the annotation {} cannot be read: {}. Correct or remove it; until then the node is not changed",
                       kDevicesAnnotation, setup.gpus->problem)}};
}

Complaints mps_fault(const Setup& setup, std::string_view code) {
  Complaints out;
  if (!setup.wants_mps()) return out;
  const std::vector<Device> devices = devices_of(*setup.gpus);
  for (Diagnostic& fault :
       mps_faults(*setup.valid_profile(), setup.mig_strategy(), {&devices, setup.gpus->mig_enabled})) {
    if (fault.code == code) out.push_back({std::move(fault.path), std::move(fault.message)});
  }
  return out;
}

Complaints mig_not_uniform(const Setup& setup) {
  if (setup.valid_profile() == nullptr || setup.mig_strategy() != "single") return {};
  if (!single_strategy_error(devices_of(*setup.gpus))) return {};
  return {{"flags.migStrategy",
           "migStrategy single needs MIG devices of one kind on every GPU, or MIG disabled everywhere; the plugin "
           "exits, and GFD labels the product -MIG-INVALID"}};
}

// The remaining reasons for which the node would have no GPUs.
Complaints gpus_cannot_be_served(const NodeSetup& setup) {
  if (setup.expectation == nullptr || !setup.expectation->error) return {};
  return {{"", *setup.expectation->error}};
}

Complaints name_matches_nothing(const Setup& setup) {
  const Profile* profile = setup.valid_profile();
  if (profile == nullptr || profile->active() == nullptr) return {};
  if (setup.gpus->mig_enabled && !setup.gpus->devices) return useless_mig_entries(setup, *profile);
  Complaints out;
  if (devices_of(*setup.gpus).empty()) return out;
  const std::optional<Expectation> expectation = expectation_of(setup);
  for (std::size_t i = 0; i < profile->active()->resources.size(); ++i) {
    const std::string& name = profile->active()->resources[i].name;
    const auto& served = expectation->allocatable;
    if (!served.contains(name) && !served.contains(name + ".shared")) out.push_back(useless_entry(*profile, i));
  }
  return out;
}

Complaints label_dropped(const Setup& setup) {
  Complaints out;
  const std::optional<Expectation> expectation = expectation_of(setup);
  if (!expectation) return out;
  for (const auto& [label, value] : expectation->dropped_labels) {
    out.push_back({"", fmt::format("NFD drops label {}: \"{}\" is not a valid label value (at most 63 characters)",
                                   label, shown_value(value))});
  }
  return out;
}

Complaints labels_unreliable(const Setup& setup) {
  const std::optional<Expectation> expectation = expectation_of(setup);
  if (!expectation || !expectation->labels_unreliable) return {};
  return {{"", "the GPUs are of different models, so GFD's labels change at random; rely only on allocatable"}};
}

// --- The node and its policy.

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
  return {{"", double_offer(setup.node, setup.use->device_class)}};
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
