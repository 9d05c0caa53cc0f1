#include "reconcilers/cluster/plugin_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

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
  std::string_view change;           // The command that changes {field} of the installation's settings.
  std::string_view set_default_key;  // The field that sets it to {key}.
  std::string_view set_config_map;   // For a plugin that mounts no ConfigMap yet.
  std::string_view upgrade;          // To v0.20.0.
};
constexpr SettingRow kRows[] = {
    {Provider::gpu_operator, "spec.devicePlugin.config.default of ClusterPolicy {owner}",
     "kubectl patch clusterpolicies.nvidia.com/{owner} --type merge -p '{{\"spec\":{{\"devicePlugin\":{{{field}}}}}}}'",
     "\"config\":{{\"default\":\"{key}\"}}", "\"config\":{{\"name\":\"CONFIGMAP\",\"default\":\"KEY\"}}",
     "\"version\":\"v0.20.0\""},
    {Provider::device_plugin_chart, "config.default of Helm release {owner}",
     "helm upgrade {owner} nvdp/nvidia-device-plugin --namespace {namespace} --reuse-values {field}",
     "--set config.default={key}", "--set config.name=CONFIGMAP,config.default=KEY", "--version 0.20.0"},
    {Provider::manifest, "DEFAULT_CONFIG of DaemonSet {namespace}/{daemonset}",
     "kubectl edit daemonset {daemonset} --namespace {namespace}{field}", " # set DEFAULT_CONFIG to {key}", "",
     " # set its images to v0.20.0"},  // And of every other provider.
};

const SettingRow& row_of(const PluginInstallation& installation) {
  const auto* row = std::ranges::find(kRows, installation.provider, &SettingRow::provider);
  return row == std::end(kRows) ? *std::rbegin(kRows) : *row;
}

std::string fill(std::string_view text, const PluginInstallation& installation, const Operand* plugin,
                 std::string_view key = {}, std::string_view field = {}) {
  const std::string daemonset = plugin == nullptr ? "DAEMONSET" : plugin->key.name;
  const std::string ns = plugin == nullptr ? installation.ns : plugin->key.ns;
  // Within the quotes of a patch; a ConfigMap has no other keys.
  const bool is_key = (key.empty() || shell_word(key) == key) && !key.contains(',');
  return fmt::format(fmt::runtime(text), fmt::arg("owner", shell_word(installation.owner)),
                     fmt::arg("namespace", shell_word(ns)), fmt::arg("daemonset", shell_word(daemonset)),
                     fmt::arg("key", is_key ? key : "KEY"), fmt::arg("field", field));
}

std::string change_of(std::string_view SettingRow::* field, const PluginInstallation& installation,
                      const Operand* plugin, std::string_view key = {}) {
  const SettingRow& row = row_of(installation);
  return fill(row.change, installation, plugin, {}, fill(row.*field, installation, plugin, key));
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
  return change_of(&SettingRow::set_default_key, installation, first_plugin(installation), key);
}

std::string set_config_map_command(const PluginInstallation& installation, const Operand* plugin) {
  return change_of(&SettingRow::set_config_map, installation, plugin);
}

std::string one_mps_profile_text(const PluginInstallation& installation, const Operand& plugin,
                                 std::string_view selects, const std::vector<std::string>& keys, std::string_view key) {
  // The operator's own keys (gso-...) are never proposed: it names them by their content, and deletes those that no
  // policy has.
  const bool is_managed = is_managed_key(key);
  const std::string first = is_managed
                                ? fmt::format(
                                      "put the inline profile under a key of your own of ConfigMap {}, name that by "
                                      "configMapKey of the policy, and make it the default",
                                      shown_value(installation.id()))
                                : std::string("make its key the default");
  const std::string edit = is_managed ? std::string("sharingpolicies.gpusharing.dev POLICY")
                                      : fmt::format("configmap {} --namespace {}", shell_word(installation.config_map),
                                                    shell_word(installation.ns));
  const PluginVersion& version = plugin.version;
  const std::string several =
      version.known && !version.known_below(0, 20, 0)
          ? "set fixes.mpsSignal=true in the operator's chart (`helm upgrade RELEASE CHART --reset-then-reuse-values "
            "--set fixes.mpsSignal=true`; Kubernetes 1.36 or later)"
          : fmt::format(
                "upgrade the plugin to v0.20.0 or later (`{}`), with which the operator's chart can make labels "
                "work",
                change_of(&SettingRow::upgrade, installation, &plugin));
  return fmt::format(
      "label {} {} MPS {} {}. Device plugin {} serves one MPS profile per installation, that of the default key {}: "
      "its MPS daemon loads no key that a label selects. Choose one: (1) one MPS profile: {} (`{}`; all nodes without "
      "that label would then run it, so label those that need another profile first); (2) time-slicing where labels "
      "select the profile: write timeSlicing for mps there (`kubectl edit {}`); (3) several MPS profiles: {}",
      plugin.node_label, selects, keys.size() == 1 ? "key" : "keys", first_names(keys),
      version.known ? version.to_string() : "v0.18.2 or later (this one might be: its release is not known)",
      or_none(shown_value(plugin.default_key)), first,
      set_default_key_command(installation, key.empty() || is_managed ? "KEY" : key), edit, several);
}

// --- Flags and environment variables against the profile.

namespace {

constexpr std::string_view kChannels = "imex.channelIDs";

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

std::optional<std::string> complaint(Component component, const OperandSetting& setting, std::string_view value) {
  if (setting.kind == OperandSetting::Kind::boolean)
    return is_go_bool(value) ? std::nullopt : std::optional<std::string>("use true or false");
  if (setting.field == kChannels)
    return is_channel_zero(value) ? std::nullopt : std::optional<std::string>("only 0 is allowed");
  if (component == Component::gfd && setting.field == "flags.deviceDiscoveryStrategy" && value == "vfio")
    return std::nullopt;
  return setting.field.empty() ? std::nullopt : word_complaint(setting.field, value);
}

// null: its DaemonSet sets none.
const Operand::Override* overriding(const Operand& operand, const OperandSetting& setting) {
  const auto found = operand.overrides.find(std::string(setting.variable));
  return found == operand.overrides.end() ? nullptr : &found->second;
}

// By a valid value.
bool overrides(const Operand& operand, const OperandSetting& setting) {
  const Operand::Override* found = overriding(operand, setting);
  return found != nullptr && !complaint(operand.component, setting, found->value);
}

}  // namespace

std::vector<std::string> wrong_settings(const Operand& operand) {
  std::vector<std::string> out;
  if (operand.component == Component::mps) return out;  // The daemon checks none of them.
  const std::string_view who = operand.component == Component::gfd ? "GPU Feature Discovery" : "the plugin";
  for (const OperandSetting& setting : kOperandSettings) {
    const Operand::Override* found = overriding(operand, setting);
    const bool applies = operand.component == Component::plugin || setting.gfd;
    // A variable that the release does not support yet has no effect.
    if (found == nullptr || !applies || operand.version.known_below(0, setting.since, 0)) continue;
    if (setting.field == kChannels && found->value.empty()) continue;
    if (const auto right = complaint(operand.component, setting, found->value))
      out.push_back(fmt::format("{} is \"{}\", and {} exits at start on every node, regardless of the profile; {}",
                                found->said_by, shown_value(found->value), who, *right));
  }
  return out;
}

OverriddenErrors overridden_errors(const Operand& plugin, const Operand* gfd) {
  OverriddenErrors out;
  for (const OperandSetting& setting : kOperandSettings) {
    if (setting.code.empty() || !overrides(plugin, setting)) continue;
    if (!setting.gfd || gfd == nullptr || overrides(*gfd, setting)) out.insert(setting.code);
    if (setting.variable == kMigStrategyVariable && overriding(plugin, setting)->value != "mixed")
      out.insert("MPSWithMixedMIG");
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
  for (const DaemonSet* daemonset : all_daemonsets(world))
    if (is_cloud_plugin(*daemonset) && selects(placement_of(*daemonset), node, false) != Selects::no)
      return daemonset->meta.key();
  return std::nullopt;
}

}  // namespace gso
