// ConfigMaps, DaemonSets and ClusterPolicies.
#include "reconcilers/checks/object_checks.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "k8sclient/value/selectors.h"
#include "reconcilers/checks/check_functions.h"
#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/plugin_settings.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/profile/field_names.h"

namespace gso {
namespace {

// Volumes that the GPU Operator's DaemonSets already have; the GPU Operator names the ConfigMap's volume after the
// ConfigMap. Source: its assets for the device plugin, GFD and the MPS control daemon.
constexpr std::array<std::string_view, 12> kTakenVolumes{"config",
                                                         "device-plugin",
                                                         "run-nvidia",
                                                         "run-nvidia-validations",
                                                         "driver-install-dir",
                                                         "host-root",
                                                         "host-sys",
                                                         "cdi-root",
                                                         "output-dir",
                                                         "mps-root",
                                                         "mps-shm",
                                                         "nvidia-device-plugin-entrypoint"};

// The namespaces that have a ConfigMap of that name, comma-separated; empty: none has.
std::string namespaces_with(const World& world, const std::string& name) {
  std::set<std::string> namespaces;
  for (const auto& [key, config_map] : world.configmaps.all())
    if (key.name == name) namespaces.insert(key.ns);
  return fmt::format("{}", fmt::join(namespaces, ", "));
}

// Every ConfigMap that exists and is wanted, once.
std::vector<const WantedConfigMap*> existing(const OperandSetup& setup) {
  std::vector<const WantedConfigMap*> out;
  std::set<ObjectKey> seen;
  for (const WantedConfigMap& wanted : setup.config_maps)
    if (wanted.found != nullptr && seen.insert(wanted.key).second) out.push_back(&wanted);
  return out;
}

// Adds what one installation mounts, and what its ClusterPolicy announces.
void add_wanted(const PluginInstallation& installation, OperandSetup& setup) {
  const auto want = [&](ObjectRef by, const std::string& name) {
    const ObjectKey key{installation.ns, name};
    const bool known = std::ranges::any_of(
        setup.config_maps, [&](const WantedConfigMap& wanted) { return wanted.wanted_by == by && wanted.key == key; });
    if (known) return;
    const ConfigMap* found = setup.world.configmaps.find(key);
    setup.config_maps.push_back(
        {std::move(by), key, found, found == nullptr ? namespaces_with(setup.world, name) : std::string()});
  };
  const Operand* plugin = first_plugin(installation);
  if (plugin != nullptr && !installation.config_map.empty())
    want(daemonset_ref({installation.ns, plugin->key.name}), installation.config_map);
  if (installation.provider != Provider::gpu_operator) return;
  const ObjectRef policy = cluster_policy_ref(installation.owner);
  const bool announces_another = installation.announced && !installation.announced_config_map.empty() &&
                                 installation.announced_config_map != installation.config_map;
  if (announces_another) want(policy, installation.announced_config_map);
  const std::string& name = installation.announced ? installation.announced_config_map : installation.config_map;
  const bool listed = std::ranges::any_of(setup.cluster_policies, [&](const ClusterPolicyConfig& config) {
    return config.policy == policy && config.name == name;
  });
  if (!name.empty() && !listed) setup.cluster_policies.push_back({policy, name, {}, true});
}

}  // namespace

OperandSetup operand_setup(const World& world, const Discovery& discovery) {
  OperandSetup setup{world, {}, {}, {}};
  std::set<ObjectKey> seen;  // A DaemonSet without profiles of its own can be in several installations.
  const auto add_operand = [&](const Operand& operand) {
    if (seen.insert(operand.key).second) setup.operands.push_back(&operand);
  };
  for (const PluginInstallation& installation : discovery.installations) {
    if (world.unsynced_namespaces.contains(installation.ns))
      continue;  // An object that is missing there might only be unread.
    std::ranges::for_each(installation.operands, add_operand);
    add_wanted(installation, setup);
  }
  std::ranges::for_each(discovery.strays, add_operand);
  if (world.clusterpolicies_forbidden) return setup;
  for (const auto& [key, policy] : world.clusterpolicies.all()) {
    const bool has_daemonsets =
        std::ranges::any_of(discovery.installations, [&](const PluginInstallation& installation) {
          return installation.provider == Provider::gpu_operator && installation.owner == policy->meta.name;
        });
    if (has_daemonsets || !policy->device_plugin_enabled || policy->config_name.empty()) continue;
    setup.cluster_policies.push_back({cluster_policy_ref(policy->meta.name), policy->config_name,
                                      policy->config_default, false,
                                      PluginVersion::of_image("device-plugin:" + policy->plugin_version)});
  }
  return setup;
}

std::vector<Finding> check_operand_setup(const World& world, const Discovery& discovery) {
  const OperandSetup setup = operand_setup(world, discovery);
  std::vector<Finding> found;
  for (const Check& check : checks()) {
    if (check.of_objects == nullptr) continue;
    for (ObjectComplaint& complaint : check.of_objects(setup))
      found.push_back({complaint.severity.value_or(check.severity),
                       std::move(complaint.object),
                       {check.code, std::move(complaint.message)}});
  }
  return found;
}

std::string key_label_problem(std::string_view key) {
  if (!k8s::label_value_problem(key)) return {};
  return fmt::format(
      "the key \"{}\" cannot be chosen by a node label: a label value has at most 63 letters, digits, '-', '_' and "
      "'.', with a letter or digit at both ends",
      shown_value(key));
}

std::string volume_name_problem(std::string_view name) {
  constexpr std::size_t kMaxVolumeName = 63;
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  const bool fits = !name.empty() && name.size() <= kMaxVolumeName && plain(name.front()) && plain(name.back()) &&
                    std::ranges::all_of(name, [&](char c) { return plain(c) || c == '-'; });
  if (fits) return {};
  return "a volume name has at most 63 lower case letters, digits and '-', with a letter or digit at both ends";
}

// --- The functions of the rows.

namespace check {

// Settings of a DaemonSet itself, by flag or variable.
ObjectComplaints setting_invalid(const OperandSetup& setup) {
  ObjectComplaints out;
  for (const Operand* operand : setup.operands) {
    for (const std::string& wrong : wrong_settings(*operand)) {
      out.push_back(
          {daemonset_ref(operand->key), fmt::format("DaemonSet {}: {}", k8s::to_string(operand->key), wrong)});
    }
  }
  return out;
}

ObjectComplaints config_map_missing(const OperandSetup& setup) {
  ObjectComplaints out;
  for (const WantedConfigMap& wanted : setup.config_maps) {
    if (wanted.found != nullptr || !wanted.elsewhere.empty()) continue;
    out.push_back(
        {wanted.wanted_by, fmt::format("ConfigMap {} does not exist: no pod that mounts it can start, and nodes "
                                       "lose their GPUs at the next restart of their pods",
                                       shown_value(k8s::to_string(wanted.key)))});
  }
  return out;
}

ObjectComplaints config_map_in_wrong_namespace(const OperandSetup& setup) {
  ObjectComplaints out;
  for (const WantedConfigMap& wanted : setup.config_maps) {
    if (wanted.elsewhere.empty()) continue;
    out.push_back(
        {wanted.wanted_by,
         fmt::format("ConfigMap {} is in namespace {}, but pods can mount it only from their own, {}; create it there",
                     shown_value(wanted.key.name), shown_value(wanted.elsewhere), wanted.key.ns)});
  }
  return out;
}

ObjectComplaints no_profiles(const OperandSetup& setup) {
  ObjectComplaints out;
  for (const WantedConfigMap* wanted : existing(setup)) {
    if (!wanted->found->data.empty()) continue;
    out.push_back({config_map_ref(wanted->key), std::string(kNoKeys)});
  }
  return out;
}

ObjectComplaints key_no_label_value(const OperandSetup& setup) {
  ObjectComplaints out;
  for (const WantedConfigMap* wanted : existing(setup)) {
    for (const auto& [key, text] : wanted->found->data)
      if (std::string problem = key_label_problem(key); !problem.empty())
        out.push_back({config_map_ref(wanted->key), std::move(problem)});
  }
  return out;
}

ObjectComplaints config_map_name_no_volume(const OperandSetup& setup) {
  ObjectComplaints out;
  for (const ClusterPolicyConfig& config : setup.cluster_policies) {
    const std::string problem = volume_name_problem(config.name);
    if (problem.empty()) continue;
    out.push_back(
        {config.policy,
         fmt::format("devicePlugin.config.name is \"{}\": the GPU Operator names a volume after it, and {}; rename the "
                     "ConfigMap",
                     shown_value(config.name), problem)});
  }
  return out;
}

ObjectComplaints config_map_name_collides(const OperandSetup& setup) {
  ObjectComplaints out;
  for (const ClusterPolicyConfig& config : setup.cluster_policies) {
    if (std::ranges::find(kTakenVolumes, config.name) == kTakenVolumes.end()) continue;
    out.push_back({config.policy, fmt::format("devicePlugin.config.name is \"{}\", but the GPU Operator's DaemonSets "
                                              "already have a volume of that name; rename the ConfigMap",
                                              shown_value(config.name))});
  }
  return out;
}

namespace {

// The ConfigMaps that it can mean: its DaemonSets, which do not exist (yet), decide the namespace. Of several the one
// that has its default key is meant.
std::vector<std::pair<ObjectKey, const ConfigMap*>> config_maps_of(const World& world,
                                                                   const ClusterPolicyConfig& config) {
  std::vector<std::pair<ObjectKey, const ConfigMap*>> out;
  for (const auto& [key, config_map] : world.configmaps.all())
    if (key.name == config.name) out.emplace_back(key, config_map.get());
  const auto has_default = [&](const auto& each) { return each.second->data.contains(config.default_key); };
  if (std::ranges::any_of(out, has_default)) std::erase_if(out, [&](const auto& each) { return !has_default(each); });
  return out;
}

}  // namespace

// A ClusterPolicy whose DaemonSets do not exist (yet): its ConfigMap, if one of that name is known. For other
// ClusterPolicies the check of the nodes reports it.
ObjectComplaints default_key_not_found(const OperandSetup& setup) {
  ObjectComplaints out;
  for (const ClusterPolicyConfig& config : setup.cluster_policies) {
    if (config.has_daemonsets || config.default_key.empty()) continue;
    for (const auto& [key, config_map] : config_maps_of(setup.world, config)) {
      if (config_map->data.contains(config.default_key)) continue;
      out.push_back({config.policy, fmt::format("devicePlugin.config.default is \"{}\", which is not a key of "
                                                "ConfigMap {}{}: every node without its own label would lose its GPUs",
                                                shown_value(config.default_key), k8s::to_string(key),
                                                key_advice(config.default_key, keys_of(*config_map)))});
    }
  }
  return out;
}

// MPS keys that only a label can select, of a ClusterPolicy whose DaemonSets do not exist (yet). Of others the check of
// the nodes reports which of them have the label.
ObjectComplaints mps_by_label_unsupported(const OperandSetup& setup) {
  ObjectComplaints out;
  for (const ClusterPolicyConfig& config : setup.cluster_policies) {
    if (config.has_daemonsets || loads_mps_by_label(config.version, false)) continue;
    for (const auto& [id, config_map] : config_maps_of(setup.world, config)) {
      std::vector<std::string> keys;
      for (const auto& [key, text] : config_map->data)
        if (key != config.default_key && text != nullptr && parse_profile(*text).profile.mps)
          keys.push_back(shown_value(key));
      if (keys.empty()) continue;
      const PluginInstallation installation{
          .ns = id.ns, .provider = Provider::gpu_operator, .owner = config.policy.name, .config_map = id.name};
      Operand plugin;
      plugin.default_key = config.default_key;
      plugin.node_label = kConfigLabel;
      plugin.version = config.version;
      out.push_back(
          {config.policy,
           one_mps_profile_text(installation, plugin, "alone can select", keys, keys.size() == 1 ? keys[0] : ""),
           Severity::warning});
    }
  }
  return out;
}

}  // namespace check

}  // namespace gso
