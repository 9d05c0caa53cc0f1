// Keys of the plugin's ConfigMap that SharingPolicies name or add.
#pragma once

#include <string>
#include <string_view>

#include "reconcilers/cluster/discovery.h"

namespace gso {

// Why a policy's configMapKey cannot be used; `id` names the ConfigMap ("namespace/name") that does not have it.
[[nodiscard]] std::string missing_key(const SharingPolicy& policy, std::string_view id, const ConfigMap& config_map);
// Nodes get the ConfigMap's only key by the fallback "single": a second key would end that fallback.
[[nodiscard]] bool relies_on_single_key(const PluginInstallation& installation, const ConfigMap& config_map);

}  // namespace gso
