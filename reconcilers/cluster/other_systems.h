// Systems beside the device plugin that a node can belong to: nos, HAMi, and those that take nodes out of service.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/cluster/operand.h"
#include "reconcilers/model/objects.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// --- nos (Nebuly) partitions the GPUs of the nodes that carry its label into MPS slices, according to the requests of
// pending pods. It has its own device plugin and writes a ConfigMap key and nvidia.com/device-plugin.config for each
// of these nodes: the rules for SharingPolicies, profiles and lint, which concern the official device plugin, do not
// apply there. Source: nebuly-ai/nos at 12e0a72, docs/en/docs (prerequisites, mps-partitioning) and
// pkg/api/nos.nebuly.com.

// Whether nos partitions the node's GPUs; only this function decides it. The label's present name decides if the node
// has it; the earlier name counts only on a node without the present one.
[[nodiscard]] bool is_partitioned_by_nos(const Node& node);
// The names of these nodes, sorted: those whose pods partitioning reads (model/partitioning_world.h).
[[nodiscard]] std::vector<std::string> partitioned_nodes(const World& world);
// "nos.nebuly.com/gpu-partitioning=mps": the label that decides it; empty if the node has none.
[[nodiscard]] std::string nos_label(const Node& node);
// Says of such a node that its GPUs are cut into slices, by whom as far as that shows, and that no SharingPolicy
// applies. For people.
[[nodiscard]] std::string nos_in_charge(const Node& node);

// The device plugin of nos: its template requires the label on its nodes.
[[nodiscard]] bool is_plugin_of_nos(const Operand& plugin);

// Keys of profiles that nos has written: nodes of nos name them, and no other node does.
[[nodiscard]] std::set<std::string> keys_of_nos(const World& world);

// --- Project-HAMi shares GPUs with a device plugin and a scheduler of its own. Its plugin serves nvidia.com/gpu like
// NVIDIA's; the memory and cores of a request (nvidia.com/gpumem, nvidia.com/gpucores) are known to its scheduler
// alone and are in no node's capacity.

// Where the DaemonSets of HAMi's device plugin place its pods, by key: only `key` and the placement are filled.
[[nodiscard]] std::vector<Operand> hami_plugins(const World& world);
// The first of them that selects the node; null: none.
[[nodiscard]] const Operand* hami_plugin_on(const std::vector<Operand>& plugins, const Node& node);
// HAMi's device plugin has registered GPUs of the node at some time: the annotation stays when HAMi is removed.
[[nodiscard]] bool was_registered_by_hami(const Node& node);

// --- Nodes that a remediation system has taken out of service, recognised by its labels and taints: while a node has
// one, that system holds the node, and the operator neither starts a change on it nor repairs it. The table in
// other_systems.cc has the source of each mark.

struct Quarantine {
  std::string_view by;  // Which system set the mark, and its meaning: "NVSentinel has quarantined the node".
  std::string mark;     // "label dgxc.nvidia.com/nvsentinel-state=draining"
};

// The first mark of the table that the node has; nullopt: none.
[[nodiscard]] std::optional<Quarantine> quarantine_of(const Node& node);

}  // namespace gso
