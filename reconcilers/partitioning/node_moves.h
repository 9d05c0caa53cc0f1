// Moves of a node's profile label from one key to another: which are in progress, which have failed and are taken back,
// and what that leaves for planning.
//
// A move is in progress from the patch of the label until the node reports the slices of the new key. It has failed if
// that takes longer than PartitioningSettings::confirm_timeout, or at once if pods turn out to use slices that the new
// key does not have: then the label returns to the key before. A label that somebody else has moved under such pods
// returns to the operator's key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "reconcilers/cluster/discovery.h"
#include "reconcilers/model/plan_draft.h"
#include "reconcilers/partitioning/partitioned_node.h"
#include "reconcilers/partitioning/slice_plan.h"

namespace gso {

struct NodeMoves {
  std::vector<NodeStanding> standings;  // By node.
  std::set<std::string> in_progress;    // Nodes with a move of the operator that is not confirmed and not overdue.
};

// Lets the node's label name the key of the mark, which becomes the node's, moved now.
[[nodiscard]] PatchNode naming_patch(const PartitionedNode& node, PartitioningMark mark, WallTime now);
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

// --- From the slices that nodes should carry to writes: first the key in the ConfigMap, then, once kubelets have
// projected it, the label that names it. At no point does a node lack slices that its pods use: the key before stays,
// and a key that a label names is neither rewritten nor removed.

// --- Pods that the scheduler leaves waiting although a node has free slices for them. It looks at volumes, the
// affinity between pods, their spread and more, which partitioning does not read: such a pod is planned for on another
// node, and the slices serve others.

// Which pods are refused, as the timers of earlier passes say. A pod is refused on a node that has had free slices for
// it for PartitioningSettings::confirm_timeout, or for three minutes if another node was that before; and for up to an
// hour after the node has them no more. Names the timers that go on.
[[nodiscard]] RefusedPlaces refused_places(PlanDraft& draft, const std::vector<PartitionedNode>& nodes,
                                           const std::vector<NodeStanding>& standings,
                                           const std::vector<const SlicePod*>& pods);
// Begins the wait of each pod that the plan puts on slices that are free already: the scheduler binds it now, or has a
// reason not to. `changing`: by node: its slices are about to change, and the wait begins once they have.
void await_scheduler(PlanDraft& draft, const std::vector<PartitionedNode>& nodes,
                     const std::vector<NodeStanding>& standings, const std::vector<const SlicePod*>& pods,
                     const std::vector<bool>& changing, const SlicePlan& plan);

// A node that should carry other slices.
struct WantedSlices {
  std::size_t node = 0;  // Index.
  Geometry geometry;
  std::int32_t priority = 0;  // The highest of the pods that wait for it.
};

// A key that is in the node's ConfigMap and that its label does not name yet. It is kept until it is of no use,
// although other pods come meanwhile: otherwise a stream of pods would restart the wait for its projection forever.
struct PendingKey {
  std::string key;
  Geometry geometry;
};
// By node index: keys that earlier passes have written, as the timers say, and that keep what the node's pods use.
[[nodiscard]] std::map<std::size_t, PendingKey> pending_keys(const Snapshot& snapshot,
                                                             const std::vector<PartitionedNode>& nodes,
                                                             PlanningCache& cache);

class Actuation {
 public:
  // `most_moves`: labels that can be moved now (the budget); `why_none`: FleetSlots::why_none. All outlive this.
  Actuation(PlanDraft& draft, const std::vector<PartitionedNode>& nodes, std::int64_t most_moves,
            const std::string& why_none)
      : draft_(draft), nodes_(nodes), moves_left_(most_moves), why_none_(why_none) {}

  // Keys that labels of nodes name and that are gone from the ConfigMap are written again, if what the node reports is
  // what they held; otherwise a finding says that they are gone.
  void restore_keys();
  // `batch`: equal as long as the same pods wait.
  void carry_out(std::vector<WantedSlices> wanted, const std::string& batch);
  // Removes keys of the operator that no node has needed for a long time, also those of nodes that are gone. Where a
  // key found no room, the keys to return to go as well, of nodes that have shown their slices for long.
  void collect_keys(const Discovery& discovery);
  // Adds the patches of ConfigMaps to the plan. Call it last.
  void finish();

 private:
  struct Move {
    const PartitionedNode* node = nullptr;
    std::string key;
    std::string text;
    std::string slices;  // For people.
  };
  [[nodiscard]] Move move_to(const WantedSlices& wanted) const;
  [[nodiscard]] bool is_being_written(const WantedSlices& wanted) const;
  // Writes the key into the node's ConfigMap, if that has room for it; `what`: for people.
  void add_key(const PartitionedNode& node, const std::string& key, const std::string& text, const std::string& what);
  void move_label(const Move& move);
  void report_full_budget(const Move& move);
  void write_keys(const std::vector<Move>& missing, const std::string& batch);
  // Nodes whose key to return to is not needed any more: their last move was well, and is long ago.
  [[nodiscard]] std::set<std::string> settled_nodes() const;

  PlanDraft& draft_;
  const std::vector<PartitionedNode>& nodes_;
  std::int64_t moves_left_;
  const std::string& why_none_;
  bool reported_full_ = false;
  std::map<ObjectKey, PatchConfigMap> patches_;
  std::map<ObjectKey, std::string> written_;  // Which slices the new keys are for; for people.
  std::map<ObjectKey, std::set<std::string>> wanted_keys_;
  std::set<ObjectKey> full_;  // A key found no room there.
};

}  // namespace gso
