// The checks of ConfigMaps, DaemonSets and ClusterPolicies.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "reconcilers/checks/config_map_checks.h"
#include "reconcilers/checks/preflight.h"
#include "reconcilers/cluster/overrides.h"

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

class ClusterCheck {
 public:
  explicit ClusterCheck(const World& world) : world_(world) {}

  void set(const PluginInstallation& set) {
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
  static const Operand* plugin_of(const PluginInstallation& set) {
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
      add(Severity::error, itself, "NoProfiles", std::string(kNoKeys));
    }
    for (const auto& [key, text] : config_map->data) {
      if (std::string problem = key_label_problem(key); !problem.empty()) {
        add(Severity::warning, itself, "KeyNoLabelValue", std::move(problem));
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
    if (const std::string problem = volume_name_problem(name); !problem.empty()) {
      add(Severity::error, policy, "ConfigMapNameNoVolume",
          fmt::format(
              "devicePlugin.config.name is \"{}\": the GPU Operator names a volume after it, and {}; rename the "
              "ConfigMap",
              name, problem));
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

}  // namespace

std::vector<Finding> check_operand_setup(const World& world, const Discovery& discovery) {
  ClusterCheck check(world);
  for (const PluginInstallation& set : discovery.sets) {
    if (!world.unsynced_namespaces.contains(set.ns)) {  // Else "missing" only means "not read yet".
      check.set(set);
    }
  }
  for (const Operand& stray : discovery.strays) {
    check.settings(stray);
  }
  if (world.clusterpolicies_forbidden) return std::move(check.found);
  for (const auto& [key, policy] : world.clusterpolicies.all()) {
    const bool has_daemonsets =
        std::any_of(discovery.sets.begin(), discovery.sets.end(), [&](const PluginInstallation& set) {
          return set.provider == Provider::gpu_operator && set.owner == policy->meta.name;
        });
    if (!has_daemonsets && policy->device_plugin_enabled) {
      check.policy_alone(*policy);
    }
  }
  return std::move(check.found);
}

std::map<std::string, const ConfigMap*> profile_maps(const World& world, const Discovery& discovery) {
  std::map<std::string, const ConfigMap*> out;
  bool named = false;
  for (const PluginInstallation& set : discovery.sets) {
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

}  // namespace gso
