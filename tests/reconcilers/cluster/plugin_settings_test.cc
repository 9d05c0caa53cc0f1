// Where the default key is set, for people, and the command that sets it: of one row for each provider.
#include "reconcilers/cluster/plugin_settings.h"

#include <gtest/gtest.h>

#include <string>

namespace gso::plugin_settings_test {
namespace {

TEST(PluginSettings, TheCommandSetsWhatTheTextNames) {
  const char* const of_daemonset = "DEFAULT_CONFIG of DaemonSet gpus/plugin";
  const char* const edit = "kubectl edit daemonset plugin --namespace gpus";
  const char* const edit_default = "kubectl edit daemonset plugin --namespace gpus # set DEFAULT_CONFIG to x4";
  const struct {
    Provider provider;
    const char *setting, *command, *config_map;
  } rows[] = {
      {Provider::gpu_operator, "spec.devicePlugin.config.default of ClusterPolicy it",
       R"(kubectl patch clusterpolicies.nvidia.com/it --type merge -p '{"spec":{"devicePlugin":{"config":{"default":"x4"}}}}')",
       R"(kubectl patch clusterpolicies.nvidia.com/it --type merge -p '{"spec":{"devicePlugin":{"config":{"name":"CONFIGMAP","default":"KEY"}}}}')"},
      {Provider::device_plugin_chart, "config.default of Helm release it",
       "helm upgrade it nvdp/nvidia-device-plugin --namespace gpus --reuse-values --set config.default=x4",
       "helm upgrade it nvdp/nvidia-device-plugin --namespace gpus --reuse-values --set "
       "config.name=CONFIGMAP,config.default=KEY"},
      {Provider::manifest, of_daemonset, edit_default, edit},
      {Provider::nos, of_daemonset, edit_default, edit},
  };
  for (const auto& row : rows) {
    PluginInstallation installation;
    installation.ns = "gpus";
    installation.provider = row.provider;
    installation.owner = "it";
    Operand plugin;
    plugin.component = Component::plugin;
    plugin.key = {"gpus", "plugin"};
    installation.operands = {plugin};
    EXPECT_EQ(default_key_setting(installation), row.setting);
    EXPECT_EQ(set_default_key_command(installation, "x4"), row.command);
    EXPECT_EQ(set_config_map_command(installation, &installation.operands.front()), row.config_map);
  }
}

}  // namespace
}  // namespace gso::plugin_settings_test
