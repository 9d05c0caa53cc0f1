// The memory of objects that tenants write: whoever may create pods in one namespace can make any number of them. Each
// is cut where it is projected (json_fields.h), and all of one store or answer together have a budget. What has no room
// is left out and counted, and whatever depends on a complete view waits.
#pragma once

#include <cstddef>
#include <string>

#include "k8sclient/watch/store.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/objects.h"
#include "reconcilers/model/partitioning_world.h"

namespace gso {

enum class TenantFed {
  kai_pods,        // KaiWorld::pods
  bind_requests,   // KaiWorld::bind_requests
  slice_pods,      // PartitioningWorld::pods; its nodes are those that are partitioned.
  group_pods,      // One list of a GPU group's pods.
  groups,          // LookupResults::groups
  waiting_pods,    // LookupResults::waiting
  node_consumers,  // The consumers of one node, and as much for pods that its kubelet has refused.
};
// The most bytes of it, with so many nodes: what a node's own pods need, and a part of 32 MiB.
[[nodiscard]] std::size_t most_bytes(TenantFed what, std::size_t nodes = 0);

// About how much memory an object needs if it shares no text with another one.
[[nodiscard]] std::size_t memory_of(const KaiPod& pod);
[[nodiscard]] std::size_t memory_of(const BindRequest& request);
[[nodiscard]] std::size_t memory_of(const SlicePod& pod);
[[nodiscard]] std::size_t memory_of(const Pod& pod);

// "412 objects are left out, team/pod-7 among them: all of them together need more than 8 MiB"; empty: none is.
[[nodiscard]] std::string left_out_text(const k8s::LeftOut& left_out, std::size_t most_bytes);

}  // namespace gso
