// The checks of ConfigMaps, DaemonSets and ClusterPolicies, and those of a whole cluster.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "reconcilers/checks/preflight.h"
#include "reconcilers/cluster/overrides.h"
#include "reconcilers/fleet/fleet_index.h"

namespace gso {
namespace {

// Volumes that the GPU Operator's DaemonSets have already; it names the ConfigMap's volume after the ConfigMap.
// Source: its assets for the device plugin, GFD and the MPS control daemon.
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

constexpr std::size_t kMaxVolumeName = 63;

bool is_dns_label(std::string_view text) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !text.empty() && text.size() <= kMaxVolumeName && plain(text.front()) && plain(text.back()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return plain(c) || c == '-'; });
}

class ClusterCheck {
 public:
  explicit ClusterCheck(const World& world) : world_(world) {}

  void set(const OperandSet& set) {
    for (const Operand& operand : set.operands) {
      settings(operand);
    }
    const Operand* plugin = plugin_of(set);
    if (plugin != nullptr && !set.config_map.empty()) {
      config_map({"apps/v1", "DaemonSet", set.ns, plugin->key.name, ""}, set.ns, set.config_map);
    }
    if (set.provider != Provider::gpu_operator) {
      return;
    }
    const ObjectRef policy{"nvidia.com/v1", "ClusterPolicy", "", set.owner, ""};
    if (set.announced && !set.announced_config_map.empty() && set.announced_config_map != set.config_map) {
      config_map(policy, set.ns, set.announced_config_map);
    }
    volume_name(policy, set.announced ? set.announced_config_map : set.config_map);
  }

  // What a DaemonSet says itself, by flag or variable.
  void settings(const Operand& operand) {
    if (!said_.insert(operand.key).second) {
      return;  // Of one without profiles of its own in several sets.
    }
    for (const std::string& wrong : wrong_settings(operand)) {
      add(Severity::error, {"apps/v1", "DaemonSet", operand.key.ns, operand.key.name, ""}, "SettingInvalid",
          fmt::format("DaemonSet {}: {}", k8s::to_string(operand.key), wrong));
    }
  }

  // A ClusterPolicy whose DaemonSets are not there (yet): its ConfigMap, as far as one of that name is known.
  void policy_alone(const ClusterPolicy& policy) {
    const ObjectRef ref{"nvidia.com/v1", "ClusterPolicy", "", policy.meta.name, ""};
    volume_name(ref, policy.config_name);
    for (const auto& [key, config_map] : world_.configmaps.all()) {
      const bool missing = key.name == policy.config_name && !policy.config_default.empty() &&
                           !config_map->data.contains(policy.config_default);
      if (missing) {
        add(Severity::error, ref, "DefaultKeyNotFound",
            fmt::format(
                "devicePlugin.config.default is \"{}\", which is no key of ConfigMap {}: every node without a label "
                "of its own would be left without GPUs",
                policy.config_default, k8s::to_string(key)));
      }
    }
  }

  std::vector<Finding> found;

 private:
  static const Operand* plugin_of(const OperandSet& set) {
    const auto it = std::find_if(set.operands.begin(), set.operands.end(),
                                 [](const Operand& operand) { return operand.component == Component::plugin; });
    return it == set.operands.end() ? nullptr : &*it;
  }

  void add(Severity severity, ObjectRef object, std::string code, std::string message) {
    found.push_back({severity, std::move(object), std::move(code), std::move(message)});
  }

  void config_map(const ObjectRef& wanted_by, const std::string& ns, const std::string& name) {
    const ObjectRef itself{"v1", "ConfigMap", ns, name, ""};
    const ConfigMap* config_map = world_.configmaps.find({ns, name});
    if (config_map == nullptr) {
      if (!missing_.emplace(wanted_by.kind, wanted_by.name, ns, name).second) {
        return;  // Two sets of one ClusterPolicy.
      }
      const std::string elsewhere = namespaces_with(name);
      if (elsewhere.empty()) {
        add(Severity::error, wanted_by, "ConfigMapMissing",
            fmt::format("ConfigMap {}/{} does not exist: the pods that mount it never start", ns, name));
      } else {
        add(Severity::error, wanted_by, "ConfigMapInWrongNamespace",
            fmt::format(
                "ConfigMap {} is in namespace {}, but pods can mount it only from their own, {}; create it there", name,
                elsewhere, ns));
      }
      return;
    }
    if (!seen_.insert({ns, name}).second) {
      return;
    }
    if (config_map->data.empty()) {
      add(Severity::error, itself, "NoProfiles",
          "the ConfigMap has no key: config-manager exits on it, with the fallback \"empty\" too");
    }
    for (const auto& [key, text] : config_map->data) {
      if (!is_label_value(key)) {
        add(Severity::warning, itself, "KeyNoLabelValue",
            fmt::format(
                "the key \"{}\" cannot be chosen by a node label: at most 63 letters, digits, '-', '_' and '.', a "
                "letter or digit at both ends",
                key));
      }
    }
  }

  [[nodiscard]] std::string namespaces_with(const std::string& name) const {
    std::string out;
    for (const auto& [key, config_map] : world_.configmaps.all()) {
      if (key.name == name) {
        out += fmt::format("{}{}", out.empty() ? "" : ", ", key.ns);
      }
    }
    return out;
  }

  void volume_name(const ObjectRef& policy, const std::string& name) {
    if (name.empty()) {
      return;
    }
    if (!is_dns_label(name)) {
      add(Severity::error, policy, "ConfigMapNameNoVolume",
          fmt::format(
              "devicePlugin.config.name is \"{}\": the GPU Operator names a volume after it, which takes at most 63 "
              "lower case letters, digits and '-', a letter or digit at both ends; rename the ConfigMap",
              name));
    } else if (std::find(kTakenVolumes.begin(), kTakenVolumes.end(), name) != kTakenVolumes.end()) {
      add(Severity::error, policy, "ConfigMapNameCollides",
          fmt::format(
              "devicePlugin.config.name is \"{}\", as a volume of the GPU Operator's DaemonSets is called already; "
              "rename the ConfigMap",
              name));
    }
  }

  const World& world_;
  std::set<ObjectKey> seen_;
  std::set<ObjectKey> said_;
  std::set<std::tuple<std::string, std::string, std::string, std::string>> missing_;
};

// ConfigMaps by "namespace/name".
using ConfigMaps = std::map<std::string, const ConfigMap*>;

// Those that a plugin mounts or a ClusterPolicy names; where neither is known, all that hold a profile. Empty ones are
// told of elsewhere.
ConfigMaps profile_maps(const World& world, const Discovery& discovery) {
  ConfigMaps out;
  bool named = false;
  for (const OperandSet& set : discovery.sets) {
    for (const std::string& name : {set.config_map, set.announced_config_map}) {
      named = named || !name.empty();
      const ConfigMap* found = name.empty() ? nullptr : world.configmaps.find({set.ns, name});
      if (found != nullptr && !found->data.empty()) out.emplace(set.ns + "/" + name, found);
    }
  }
  for (const auto& [key, policy] : world.clusterpolicies.all()) {
    named = named || !policy->config_name.empty();
    for (const auto& [id, config_map] : world.configmaps.all()) {
      if (id.name == policy->config_name && !config_map->data.empty())
        out.emplace(k8s::to_string(id), config_map.get());
    }
  }
  if (named) return out;
  for (const auto& [id, config_map] : world.configmaps.all()) {
    const bool holds = std::any_of(config_map->data.begin(), config_map->data.end(), [](const auto& entry) {
      return entry.second != nullptr && reads_like_profile(*entry.second);
    });
    if (holds) out.emplace(k8s::to_string(id), config_map.get());
  }
  return out;
}

// SharingPolicies that name a key which the ConfigMap of one of their nodes, or every ConfigMap, lacks.
void check_policy_keys(const World& world, const FleetIndex& fleet, std::vector<Finding>& found) {
  const FleetIndex::Impl& index = fleet.impl();
  std::map<std::string, std::set<std::string>> wrong;  // By policy.
  for (const std::string& name : fleet.node_names()) {
    const NodeAssessment& node = *index.find(name);
    if (node.wrong_key) wrong[std::string(node.policy.view())].insert(index.set_of(node).id());
  }
  const ConfigMaps all = profile_maps(world, index.discovery);
  for (const auto& [key, policy] : world.policies.all()) {
    if (!policy->config_map_key || is_managed_key(*policy->config_map_key)) continue;
    const bool somewhere = std::any_of(all.begin(), all.end(), [&](const auto& entry) {
      return entry.second->data.contains(*policy->config_map_key);
    });
    for (const auto& [id, config_map] : all) {
      if (somewhere && !wrong[policy->meta.name].contains(id)) continue;
      found.push_back({policy->mode == PolicyMode::observe ? Severity::warning : Severity::error,
                       {"gpusharing.dev/v1alpha1", "SharingPolicy", "", policy->meta.name, ""},
                       "ConfigInvalid",
                       missing_key(*policy, id, *config_map)});
    }
  }
}

}  // namespace

std::vector<Finding> check_operand_setup(const World& world, const Discovery& discovery) {
  ClusterCheck check(world);
  for (const OperandSet& set : discovery.sets) {
    if (!world.unsynced_namespaces.contains(set.ns)) {  // Else "missing" only means "not read yet".
      check.set(set);
    }
  }
  for (const Operand& stray : discovery.strays) {
    check.settings(stray);
  }
  if (world.clusterpolicies_forbidden) return std::move(check.found);
  for (const auto& [key, policy] : world.clusterpolicies.all()) {
    const bool has_daemonsets = std::any_of(discovery.sets.begin(), discovery.sets.end(), [&](const OperandSet& set) {
      return set.provider == Provider::gpu_operator && set.owner == policy->meta.name;
    });
    if (!has_daemonsets && policy->device_plugin_enabled) {
      check.policy_alone(*policy);
    }
  }
  return std::move(check.found);
}

std::vector<Finding> check_cluster(const World& world, const PlannerSettings& settings) {
  FleetIndex fleet;
  fleet.note_everything_changed();
  fleet.refresh(world, settings);
  const FleetIndex::Impl& index = fleet.impl();
  std::vector<Finding> found = check_operand_setup(world, index.discovery);
  for (const std::string& name : fleet.node_names()) {
    const NodeAssessment* assessment = index.find(name);
    if (assessment == nullptr || assessment->setup == nullptr) {
      continue;
    }
    for (const Diagnostic& d : *assessment->setup) {
      const std::string where = d.path.empty() ? d.message : fmt::format("{}: {}", d.path, d.message);
      found.push_back({d.severity, {"v1", "Node", "", name, ""}, d.code, where});
    }
  }
  check_policy_keys(world, fleet, found);
  return found;
}

}  // namespace gso
