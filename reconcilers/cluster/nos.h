// nos (Nebuly) partitions the GPUs of the nodes that carry its label into MPS slices, according to the requests of
// pending pods. It has its own device plugin and writes a ConfigMap key and nvidia.com/device-plugin.config for each of
// these nodes: the rules for SharingPolicies, profiles and lint, which concern the official device plugin, do not apply
// there. Source: nebuly-ai/nos at 12e0a72, docs/en/docs (prerequisites, mps-partitioning) and pkg/api/nos.nebuly.com.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/cluster/operand.h"
#include "reconcilers/model/objects.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

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

}  // namespace gso
