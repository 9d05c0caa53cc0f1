// nos (Nebuly) partitions the GPUs of the nodes that carry its label into MPS slices, by what pods wait for. It has a
// device plugin of its own and writes a ConfigMap key and nvidia.com/device-plugin.config for each of these nodes: what
// SharingPolicies, profiles and lint say of the official device plugin does not apply there. Source: nebuly-ai/nos at
// 12e0a72, docs/en/docs (prerequisites, mps-partitioning) and pkg/api/nos.nebuly.com.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "reconcilers/cluster/operand.h"
#include "reconcilers/model/objects.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// Whether nos partitions the node's GPUs: the one place that decides it. The label's present name decides where the
// node has it; the one that nos used before counts on a node that has no other.
[[nodiscard]] bool is_partitioned_by_nos(const Node& node);
// "nos.nebuly.com/gpu-partitioning=mps": the label that says so; empty where none does.
[[nodiscard]] std::string nos_label(const Node& node);
// Who is in charge of such a node, and how it becomes the operator's again. For people.
[[nodiscard]] std::string nos_in_charge(const Node& node);

// The device plugin of nos: its template demands the label from its nodes.
[[nodiscard]] bool is_plugin_of_nos(const Operand& plugin);

// Keys of profiles that nos has written: nodes of nos name them, and no other node does.
[[nodiscard]] std::set<std::string> keys_of_nos(const World& world);

}  // namespace gso
