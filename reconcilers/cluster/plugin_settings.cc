// See plugin_settings.h.
#include "reconcilers/cluster/plugin_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "reconcilers/model/foreign_text.h"

namespace gso {
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

}  // namespace gso
