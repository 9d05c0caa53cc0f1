// Where people set the default key of a device plugin and the ConfigMap that it mounts: by what installed the plugin.
#pragma once

#include <string>
#include <string_view>

#include "reconcilers/cluster/discovery.h"

namespace gso {

// The first device plugin of the installation, of those that each serve other nodes; null: it has none.
[[nodiscard]] const Operand* first_plugin(const PluginInstallation& installation);

// "spec.devicePlugin.config.default of ClusterPolicy cluster-policy": where the installation's default key is set.
[[nodiscard]] std::string default_key_setting(const PluginInstallation& installation);

// Sets the default key there.
[[nodiscard]] std::string set_default_key_command(const PluginInstallation& installation, std::string_view key);

// For a plugin without profiles: sets which ConfigMap it mounts, and its default key. `plugin`: its DaemonSet on the
// node; may be null.
[[nodiscard]] std::string set_config_map_command(const PluginInstallation& installation, const Operand* plugin);

}  // namespace gso
