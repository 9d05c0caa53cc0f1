// What the plugin that serves slices must be: nos's fork, or a release of NVIDIA's.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/model/plan_draft.h"
#include "reconcilers/partitioning/partitioned_node.h"
#include "reconcilers/partitioning/slice_plan.h"

namespace gso {

// --- Nodes that the operator has partitioned and that are not labelled for it any more: they get back what they had
// before. A node is released when its label is gone. A node whose owner had set only the former name of the label, and
// has removed it, still has the present name, which the operator had set beside it: it is released as well, once no
// pod uses its slices, because the plugin leaves a node with that label.

inline constexpr std::string_view kPartitioningReleased = "PartitioningReleased";

// Restores the node: its profile label, if that still names the operator's key, has the value again that it had before
// the operator moved it first; the operator's annotation goes, and so does the label that it set. A key that nos had
// written is restored only while the node is labelled: no other plugin knows it.
[[nodiscard]] PatchNode restoring_patch(const Node& node);

// To be asked in every pass in which the label that nos's plugin selects by is missing: it has been for two minutes.
// Nodes change labels for a moment, such as while a script sets all of them anew.
[[nodiscard]] bool has_lost_label(PlanDraft& draft, const std::string& node);

// Adds the patches of nodes that have lost their label and that nobody holds; `left` are the names of those without
// the label.
void release_left(PlanDraft& draft, const Discovery& discovery, const std::set<std::string>& left);
// The same for nodes whose owner has removed the former name of the label.
void release_withdrawn(PlanDraft& draft, const std::vector<PartitionedNode>& nodes);

// --- What the official device plugin can do for pods that wait for slices: replicas of one size, as a profile that a
// person can write. The operator never writes it. Source: NVIDIA/k8s-device-plugin v0.20, api/config/v1 (no memory per
// replica; `rename` and `devices` are ignored) and cmd/mps-control-daemon (a replica's memory limit is the GPU's
// memory divided by the replicas).

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
