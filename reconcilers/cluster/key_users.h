// Who uses a key of a ConfigMap with profiles, as far as the stores show it: what its removal would break.
#pragma once

#include <string>

#include "reconcilers/model/snapshot.h"

namespace gso {

// Nodes of the device plugins that mount the ConfigMap, if their label names the key; plugins whose default it is; and
// SharingPolicies that name it. For people: "node a, DaemonSet b/c (DEFAULT_CONFIG) and policy d"; empty: nobody.
[[nodiscard]] std::string key_users(const World& world, const ObjectKey& config_map, const std::string& key);

}  // namespace gso
