// Moves of a node's profile label from one key to another: which are in progress, which have failed and are taken back,
// and what that leaves for planning.
//
// A move is in progress from the patch of the label until the node reports the slices of the new key. It has failed if
// that takes longer than PartitioningSettings::confirm_timeout, or at once if pods turn out to use slices that the new
// key does not have: then the label returns to the key before. A label that somebody else has moved under such pods
// returns to the operator's key.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "reconcilers/model/plan_draft.h"
#include "reconcilers/partitioning/partitioned_node.h"
#include "reconcilers/partitioning/slice_plan.h"

namespace gso {

struct NodeMoves {
  std::vector<NodeStanding> standings;  // By node.
  std::set<std::string> in_progress;    // Nodes with a move of the operator that is not confirmed and not overdue.
};

// When the label was moved, as the node's annotation says: the timer of that time.
[[nodiscard]] TimerKey moved_timer(const PartitionedNode& node);

// Adds what must be said of nodes in progress, and the patches that take failed moves back.
[[nodiscard]] NodeMoves follow_moves(PlanDraft& draft, const std::vector<PartitionedNode>& nodes, PlanningCache& cache);

// Every slice that the node's pods use, as far as it is known on which GPU, is in `geometry`; so are enough slices for
// the bound pods that the report does not show yet.
[[nodiscard]] bool keeps_pods(const PartitionedNode& node, const Geometry& geometry);

// `geometry` gives up a free slice that one of the bound pods might have: it is not known yet on which GPU those are
// whose slices the report does not show, or that were bound a moment ago.
[[nodiscard]] bool might_cut_bound_slices(const PartitionedNode& node, const Geometry& geometry);

// The GPUs that the node has can carry `geometry` with so many GiB each: a machine can come back with other GPUs under
// the same name.
[[nodiscard]] bool fits_gpus(const PartitionedNode& node, const Geometry& geometry, std::int64_t gigabytes);

}  // namespace gso
