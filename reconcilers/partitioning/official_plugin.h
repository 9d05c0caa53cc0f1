// What the official device plugin can do for pods that wait for slices: replicas of one size, as a profile that a
// person can write. The operator never writes it.
//
// Source: NVIDIA/k8s-device-plugin v0.20, api/config/v1 (no memory per replica; `rename` and `devices` are ignored) and
// cmd/mps-control-daemon (a replica's memory limit is the GPU's memory divided by the replicas).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reconcilers/partitioning/partitioned_node.h"
#include "reconcilers/partitioning/pending_pods.h"

namespace gso {

struct HomogeneousReplicas {
  std::int64_t replicas = 0;       // Of each GPU, at least 2.
  std::int64_t gigabytes = 0;      // GiB that each replica has, rounded down.
  std::int64_t largest_asked = 0;  // GiB: the largest slice that fits a replica.
  friend bool operator==(const HomogeneousReplicas&, const HomogeneousReplicas&) = default;
};
// As many replicas as possible that are as large as the largest slice that `pods` ask for. Slices that do not fit a GPU
// twice do not count; nullopt: the pods ask for no other ones.
[[nodiscard]] std::optional<HomogeneousReplicas> nearest_replicas(const NodeSlices& slices,
                                                                  const std::vector<const SlicePod*>& pods,
                                                                  const PartitioningSettings& settings);

// For people: which plugin serves the node, the profile of it that is nearest to what pods wait for, and what else
// there is for slices of different sizes. Empty: no official plugin selects the node.
[[nodiscard]] std::string official_alternative(const Discovery& discovery, const PartitionedNode& node,
                                               const std::vector<const SlicePod*>& pods,
                                               const PartitioningSettings& settings);

}  // namespace gso
