// Moves of a node's profile label from one key to another: which are in progress, which have failed and are taken back,
// and what that leaves for planning.
//
// A move is in progress from the patch of the label until the node reports the slices of the new key. It has failed if
// that takes longer than PartitioningSettings::confirm_timeout, or at once if pods turn out to use slices that the new
// key does not have: then the label returns to the key before. A label that somebody else has moved under such pods
// returns to the operator's key.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "reconcilers/cluster/discovery.h"
#include "reconcilers/model/plan_draft.h"
#include "reconcilers/partitioning/partitioned_node.h"
#include "reconcilers/partitioning/slice_plan.h"

namespace gso {

// Lets the node's label name the key of the mark, which becomes the node's, moved now.
[[nodiscard]] PatchNode naming_patch(const PartitionedNode& node, PartitioningMark mark, WallTime now);
// When the label was moved, as the node's annotation says: the timer of that time.
[[nodiscard]] TimerKey moved_timer(const PartitionedNode& node);

// Sets the standing of each node; adds what must be said of nodes in progress, and the patches that take failed moves
// back.
void follow_moves(PlanDraft& draft, std::vector<PartitionedNode>& nodes, PlanningCache& cache);

// Every slice that the node's pods use, as far as it is known on which GPU, is in `geometry`; so are enough slices for
// the bound pods that the report does not show yet.
[[nodiscard]] bool keeps_pods(const PartitionedNode& node, const Geometry& geometry);

// `geometry` gives up a free slice that one of the bound pods might have: it is not known yet on which GPU those are
// whose slices the report does not show, or that were bound a moment ago.
[[nodiscard]] bool might_cut_bound_slices(const PartitionedNode& node, const Geometry& geometry);

// The GPUs that the node has can carry `geometry`, each as many GiB as `most` says: a machine can come back with other
// GPUs under the same name.
[[nodiscard]] bool fits_gpus(const PartitionedNode& node, const Geometry& geometry,
                             const std::function<std::int64_t(const GpuSlices&)>& most);

// --- Pods that the scheduler leaves waiting although a node has free slices for them. It looks at volumes, the
// affinity between pods, their spread and more, which partitioning does not read: such a pod is planned for on another
// node, and the slices serve others.

// Sets PodToPlace::refused_by, as the timers of earlier passes say, and cut_for, as the annotations of the nodes say. A
// pod is refused on a node that has had free slices for it for PartitioningSettings::confirm_timeout, or for three
// minutes if another node was that before; and for up to an hour after the node has them no more. Names the timers that
// go on.
void find_refusals(PlanDraft& draft, const std::vector<PartitionedNode>& nodes, std::vector<PodToPlace>& pods);
// PartitioningMark::pods of the node with that index, should its label be moved now: the pods that the plan puts there
// beyond its free slices, and those that an earlier move within the hour was for, with the time of that move.
[[nodiscard]] std::string pods_of_move(const PartitionedNode& node, std::size_t index,
                                       const std::vector<PodToPlace>& pods, const SlicePlan& plan);
// Begins the wait of each pod that the plan puts on slices that are free already: the scheduler binds it now, or has a
// reason not to. It begins later where the slices are about to change: by the plan, or by a key of `pending`.
void await_scheduler(PlanDraft& draft, const std::vector<PartitionedNode>& nodes, const std::vector<PodToPlace>& pods,
                     const PendingKeys& pending, const SlicePlan& plan);

// --- From the slices that nodes should carry to writes: first the key in the ConfigMap, then, once kubelets have
// projected it, the label that names it. At no point does a node lack slices that its pods use: the key before stays,
// and a key that a label names is neither rewritten nor removed.

// Keys that earlier passes have written, as the timers say, that no label names yet, and that keep what the node's pods
// use. Such a key is kept until it is of no use, although other pods come meanwhile: otherwise a stream of pods would
// restart the wait for its projection forever.
[[nodiscard]] PendingKeys pending_keys(const Snapshot& snapshot, const std::vector<PartitionedNode>& nodes,
                                       PlanningCache& cache);

// A node that should carry other slices.
struct WantedSlices {
  const PartitionedNode* node = nullptr;
  Geometry geometry;
  std::int32_t priority = 0;  // The highest of the pods that wait for it.
  std::string pods;           // PartitioningMark::pods.
};

// What the whole fleet, labelled nodes included, leaves of the cluster's budget
// (PlannerSettings::cluster_max_unavailable).
struct FleetSlots {
  std::int64_t free = 0;  // At the end of what rollouts start in this pass.
  // Why none is free, for people. Empty: some are, or only moves of slices hold them, which end by themselves.
  std::string why_none = {};
};

// Plans the writes for these slices. `batch`: equal as long as the same pods wait. Keys that labels of nodes name and
// that are gone from the ConfigMap are written again, if what the node reports is what they held; otherwise a finding
// says that they are gone. Keys of the operator that no node has needed for a long time are removed, also those of
// nodes that are gone; where a key found no room, so are keys to return to, of nodes that have shown their slices for
// long.
void actuate(PlanDraft& draft, const Discovery& discovery, const std::vector<PartitionedNode>& nodes,
             std::vector<WantedSlices> wanted, const FleetSlots& slots, const std::string& batch);

// --- Nodes that the operator has partitioned and that are not labelled for it any more: they get back what they had
// before. A node is released when its label is gone. A node whose owner had set only the former name of the label, and
// has removed it, still has the present name, which the operator had set beside it: it is released as well, once no
// pod uses its slices, because the plugin leaves a node with that label.

// Restores the node: its profile label, if that still names the operator's key, has the value again that it had before
// the operator moved it first; the operator's annotation goes, and so does the label that it set. A key that nos had
// written is restored only while the node is labelled: no other plugin knows it.
[[nodiscard]] PatchNode restoring_patch(const Node& node);

// Adds the patches of nodes that have lost their label and that nobody holds; `left` are the names of those without
// the label.
void release_left(PlanDraft& draft, const Discovery& discovery, const std::set<std::string>& left);
// The same for nodes whose owner has removed the former name of the label.
void release_withdrawn(PlanDraft& draft, const std::vector<PartitionedNode>& nodes);

}  // namespace gso
