#include "reconcilers/cluster/plugin_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "k8sclient/value/encoding.h"
#include "reconcilers/cluster/facts.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/profile/go_text.h"

namespace gso {

bool knows_mps(const PluginVersion& version) {
  return !version.known_below(0, 15, 0);
}

bool loads_mps_by_label(const PluginVersion& version, bool signal_fixed) {
  return version.known_below(0, 18, 2) || (signal_fixed && version.known && !version.known_below(0, 20, 0));
}

bool refuses_requests_above_one(const Profile& profile, const PluginVersion& version) {
  const SharingSection* active = profile.active();
  if (active == nullptr || profile.strategy() == Strategy::none) return false;
  if (!profile.mps) return active->fail_requests_greater_than_one.value_or(false);
  const bool forced = !version.known || version.known_below(0, 20, 0);
  return forced || active->fail_requests_greater_than_one.value_or(true);
}

std::optional<std::string> request_refusal(const Profile& profile, const PluginVersion& version,
                                           std::string_view resource, std::int64_t count) {
  const bool shared = profile.plugin_replicas(resource) > 1;
  if (!shared || count <= 1 || !refuses_requests_above_one(profile, version)) return std::nullopt;
  return fmt::format("{} is shared and the plugin refuses requests above 1 of it; found {}", resource, count);
}

namespace {

// {owner}: the ClusterPolicy or the Helm release. {daemonset}: the plugin's, in {namespace}.
struct SettingRow {
  Provider provider;
  std::string_view default_key;      // The setting, for people.
  std::string_view set_default_key;  // The command that sets it to {key}.
  std::string_view set_config_map;   // The command for a plugin that mounts no ConfigMap yet.
};
constexpr SettingRow kRows[] = {
    {Provider::gpu_operator, "spec.devicePlugin.config.default of ClusterPolicy {owner}",
     "kubectl patch clusterpolicies.nvidia.com/{owner} --type merge -p "
     "'{{\"spec\":{{\"devicePlugin\":{{\"config\":{{\"default\":\"{key}\"}}}}}}}}'",
     "kubectl patch clusterpolicies.nvidia.com/{owner} --type merge -p "
     "'{{\"spec\":{{\"devicePlugin\":{{\"config\":{{\"name\":\"CONFIGMAP\",\"default\":\"KEY\"}}}}}}}}'"},
    {Provider::device_plugin_chart, "config.default of Helm release {owner}",
     "helm upgrade {owner} nvdp/nvidia-device-plugin --namespace {namespace} --reuse-values --set config.default={key}",
     "helm upgrade {owner} nvdp/nvidia-device-plugin --namespace {namespace} --reuse-values --set "
     "config.name=CONFIGMAP,config.default=KEY"},
};
constexpr SettingRow kOfDaemonSet{Provider::manifest, "DEFAULT_CONFIG of DaemonSet {namespace}/{daemonset}",
                                  "kubectl edit daemonset {daemonset} --namespace {namespace}  # set DEFAULT_CONFIG to "
                                  "{key}",
                                  "kubectl edit daemonset {daemonset} --namespace {namespace}"};

const SettingRow& row_of(const PluginInstallation& installation) {
  const auto* row = std::ranges::find(kRows, installation.provider, &SettingRow::provider);
  return row == std::end(kRows) ? kOfDaemonSet : *row;
}

std::string fill(std::string_view text, const PluginInstallation& installation, const Operand* plugin,
                 std::string_view key = {}) {
  const std::string daemonset = plugin == nullptr ? "DAEMONSET" : plugin->key.name;
  const std::string ns = plugin == nullptr ? installation.ns : plugin->key.ns;
  // Within the quotes of a patch; a ConfigMap has no other keys.
  const bool is_key = (key.empty() || shell_word(key) == key) && !key.contains(',');
  return fmt::format(fmt::runtime(text), fmt::arg("owner", shell_word(installation.owner)),
                     fmt::arg("namespace", shell_word(ns)), fmt::arg("daemonset", shell_word(daemonset)),
                     fmt::arg("key", is_key ? key : "KEY"));
}

}  // namespace

const Operand* first_plugin(const PluginInstallation& installation) {
  const auto plugin = std::ranges::find(installation.operands, Component::plugin, &Operand::component);
  return plugin == installation.operands.end() ? nullptr : &*plugin;
}

std::string default_key_setting(const PluginInstallation& installation) {
  return fill(row_of(installation).default_key, installation, first_plugin(installation));
}

std::string set_default_key_command(const PluginInstallation& installation, std::string_view key) {
  return fill(row_of(installation).set_default_key, installation, first_plugin(installation), key);
}

std::string set_config_map_command(const PluginInstallation& installation, const Operand* plugin) {
  return fill(row_of(installation).set_config_map, installation, plugin);
}

// --- Flags and environment variables against the profile.

namespace {

struct Setting {
  std::string_view variable;
  std::string_view field;
  std::string_view code;
  bool gfd;  // GFD also reads it.
};

constexpr std::string_view kChannels = "IMEX_CHANNEL_IDS";
constexpr std::string_view kDiscovery = "DEVICE_DISCOVERY_STRATEGY";

constexpr std::array<Setting, 7> kSettings{
    {{"MIG_STRATEGY", "flags.migStrategy", "UnknownMigStrategy", true},
     {"MIG_STRATEGY", "flags.migStrategy", "MPSWithMixedMIG", false},
     {kDiscovery, "flags.deviceDiscoveryStrategy", "UnknownDiscoveryStrategy", true},
     {"DEVICE_ID_STRATEGY", "flags.plugin.deviceIDStrategy", "UnknownDeviceIDStrategy", false},
     {"DEVICE_LIST_STRATEGY", "flags.plugin.deviceListStrategy", "UnknownDeviceListStrategy", false},
     {"SHARED_DEVICES_ALLOCATION_POLICY", "flags.plugin.sharedDevicesAllocationPolicy", "UnknownAllocationPolicy",
      false},
     {kChannels, "imex.channelIDs", "InvalidImexChannels", false}}};

// Variables that Go reads as a boolean.
constexpr std::array<std::string_view, 6> kBooleans{"FAIL_ON_INIT_ERROR", "PASS_DEVICE_SPECS", "GDRCOPY_ENABLED",
                                                    "GDS_ENABLED",        "MOFED_ENABLED",     "IMEX_REQUIRED"};

// Like strconv.ParseBool, which is not called for an empty variable.
bool is_go_bool(std::string_view text) {
  static constexpr std::array<std::string_view, 13> kWords{"",  "1", "t", "T",     "TRUE",  "true", "True",
                                                           "0", "f", "F", "FALSE", "false", "False"};
  return std::find(kWords.begin(), kWords.end(), text) != kWords.end();
}

// The plugin accepts channel 0 or none. An empty variable is not a list: the profile's value is used.
bool is_channel_zero(std::string_view text) {
  return parse_go_int(k8s::trimmed(text), 0) == 0;
}

std::optional<std::string> complaint(Component component, std::string_view field, std::string_view value) {
  if (field == "imex.channelIDs") {
    return is_channel_zero(value) ? std::nullopt : std::optional<std::string>("only 0 is allowed");
  }
  if (component == Component::gfd && field == "flags.deviceDiscoveryStrategy" && value == "vfio") return std::nullopt;
  return word_complaint(field, value);
}

bool overrides(const Operand& operand, const Setting& setting) {
  const auto found = operand.overrides.find(std::string(setting.variable));
  return found != operand.overrides.end() && !complaint(operand.component, setting.field, found->second.value) &&
         !(setting.code == "MPSWithMixedMIG" && found->second.value == "mixed");
}

// A variable that the release does not support yet has no effect.
bool is_read(const Operand& operand, std::string_view variable) {
  static constexpr std::array<std::pair<std::string_view, int>, 5> kSince{{{kDiscovery, 16},
                                                                           {kChannels, 17},
                                                                           {"IMEX_REQUIRED", 17},
                                                                           {"GDRCOPY_ENABLED", 18},
                                                                           {"SHARED_DEVICES_ALLOCATION_POLICY", 20}}};
  return std::none_of(kSince.begin(), kSince.end(), [&](const auto& since) {
    return since.first == variable && operand.version.known_below(0, since.second, 0);
  });
}

}  // namespace

std::vector<std::string> wrong_settings(const Operand& operand) {
  std::vector<std::string> out;
  if (operand.component == Component::mps) return out;  // The daemon checks none of them.
  const std::string_view who = operand.component == Component::gfd ? "GPU Feature Discovery" : "the plugin";
  const auto say = [&](const Operand::Override& setting, std::string_view right) {
    out.push_back(fmt::format("{} is \"{}\", and {} exits at start on every node, regardless of the profile; {}",
                              setting.said_by, shown_value(setting.value), who, right));
  };
  for (const Setting& setting : kSettings) {
    const auto found = operand.overrides.find(std::string(setting.variable));
    const bool applies = operand.component == Component::plugin || setting.gfd;
    if (found == operand.overrides.end() || setting.code == "MPSWithMixedMIG" || !applies ||
        !is_read(operand, setting.variable))
      continue;
    if (setting.variable == kChannels && found->second.value.empty()) continue;
    if (const auto right = complaint(operand.component, setting.field, found->second.value)) say(found->second, *right);
  }
  for (const std::string_view variable : kBooleans) {
    const auto found = operand.overrides.find(std::string(variable));
    const bool applies = operand.component == Component::plugin || variable == "FAIL_ON_INIT_ERROR";
    if (found != operand.overrides.end() && applies && is_read(operand, variable) && !is_go_bool(found->second.value)) {
      say(found->second, "use true or false");
    }
  }
  return out;
}

OverriddenErrors overridden_errors(const Operand& plugin, const Operand* gfd) {
  OverriddenErrors out;
  for (const Setting& setting : kSettings) {
    if (overrides(plugin, setting) && (!setting.gfd || gfd == nullptr || overrides(*gfd, setting))) {
      out.insert(setting.code);
    }
  }
  return out;
}

bool has_mps_root(const Operand& plugin, const Profile& profile) {
  if (plugin.mps_root || plugin.overrides.contains("MPS_ROOT")) return plugin.mps_root;
  const auto setting = profile.settings.find("flags.mpsRoot");
  return setting != profile.settings.end() && !setting->second.empty();
}

namespace {

// GKE's container and its image, which has several paths: gke.gcr.io/nvidia-gpu-device-plugin@sha256:….
constexpr std::string_view kPlugin = "nvidia-gpu-device-plugin";

bool is_cloud_plugin(const DaemonSet& daemonset) {
  return std::ranges::any_of(daemonset.containers, [](const ContainerSpec& container) {
    return container.name == kPlugin || image_name(container.image) == kPlugin;
  });
}

}  // namespace

std::optional<ObjectKey> cloud_plugin_on(const World& world, const Node& node) {
  for (const DaemonSet* daemonset : all_daemonsets(world)) {
    if (is_cloud_plugin(*daemonset) && selects(placement_of(*daemonset), node, false) != Selects::no)
      return daemonset->meta.key();
  }
  return std::nullopt;
}

}  // namespace gso
