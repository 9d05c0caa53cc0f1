// Project-HAMi shares GPUs with a device plugin and a scheduler of its own. Its plugin serves nvidia.com/gpu like
// NVIDIA's; the memory and cores of a request (nvidia.com/gpumem, nvidia.com/gpucores) are known to its scheduler alone
// and are in no node's capacity.
#pragma once

#include <vector>

#include "reconcilers/cluster/operand.h"
#include "reconcilers/model/objects.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// Where the DaemonSets of HAMi's device plugin place its pods, by key: only `key` and the placement are filled.
[[nodiscard]] std::vector<Operand> hami_plugins(const World& world);
// The first of them that selects the node; null: none.
[[nodiscard]] const Operand* hami_plugin_on(const std::vector<Operand>& plugins, const Node& node);
// HAMi's device plugin has registered GPUs of the node at some time: the annotation stays when HAMi is removed.
[[nodiscard]] bool was_registered_by_hami(const Node& node);

}  // namespace gso
