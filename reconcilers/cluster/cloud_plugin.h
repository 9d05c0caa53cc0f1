// A device plugin that a cloud provider runs from a DaemonSet of its own: GKE's. It reads no profile, so the operator
// has nothing to change there.
#pragma once

#include <optional>

#include "reconcilers/model/snapshot.h"

namespace gso {

// The DaemonSet whose pods serve the node's GPUs; nullopt: none.
[[nodiscard]] std::optional<ObjectKey> cloud_plugin_on(const World& world, const Node& node);

}  // namespace gso
