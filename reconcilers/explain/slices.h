// The slices of partitioned nodes and of the pods that use them, for people.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reconcilers/explain/pod.h"
#include "reconcilers/model/objects.h"
#include "reconcilers/model/partitioning_world.h"
#include "reconcilers/partitioning/node_slices.h"

namespace gso {

// One GPU of a node that is labelled for partitioning.
struct GpuBar {
  std::int64_t gpu = 0;  // Its index.
  std::int64_t memory_mib = 0;
  GpuSlices slices;
  std::string bar;  // "[######----....]": memory of used slices, of free ones, and the rest.
};
// By index; empty if the node is not labelled for partitioning, or its report makes no sense.
[[nodiscard]] std::vector<GpuBar> slice_bars(const Node& node);
// "40.0 GiB"
[[nodiscard]] std::string memory_of(const GpuBar& bar);
// "GPU 0 [######----....] 40.0 GiB; used: 2 x 10 GiB; free: none"
[[nodiscard]] std::string to_string(const GpuBar& bar);

// What every reconciler finds now, and the Events about slices that pods hear. `index` is refreshed.
[[nodiscard]] std::vector<Finding> findings_and_slices(const Snapshot& snapshot, FleetIndex& index);
// What is planned for a pod that waits for slices, or why nothing is, by those findings; nullopt: it waits for none, or
// no scheduler has called it unschedulable yet.
[[nodiscard]] std::optional<PodCause> awaited_slices(const std::vector<Finding>& findings, const Pod& pod);
// The finding is about slices that a pod waits for: awaited_slices() says it.
[[nodiscard]] bool is_of_awaited_slices(const Finding& finding);

// What each container of the pod that requests a slice can allocate, and how to see it in a pod that runs. Empty for
// other pods.
[[nodiscard]] std::vector<PodCause> slice_limits(const SlicePod& pod);

}  // namespace gso
