// How a GPU is cut into slices: the state of a search, and the search.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace gso {

// --- The slices of one node's GPUs for a demand: which free slices stay, which are given up, and what is added. Used
// slices are never part of it: a GPU's room is what they leave. Free slices are given up only as far as their room is
// needed, and never one that a pod of the demand, or one that is bound already, needs.

// Numbers of slices by size: the index counts in the list of sizes that all nodes and pods of one plan share.
using SizeCounts = std::vector<std::int32_t>;

struct PackGpu {
  // GiB that neither slices nor the driver and the MPS server use. Negative: slices that exist leave less to those.
  std::int64_t room = 0;
  SizeCounts free;  // Slices that the GPU carries and that no report calls used.
  friend bool operator==(const PackGpu&, const PackGpu&) = default;
};

struct PackNode {
  std::vector<PackGpu> gpus;
  SizeCounts taken;  // So many free slices belong to bound pods that the report does not show yet.
  // So many more might: pods that were bound a moment ago, which the report shows or not. They stay, and serve other
  // pods all the same. Empty: none.
  SizeCounts just_taken;
  bool changeable = false;  // Otherwise it only has its free slices.
  bool busy = false;        // It has used slices.
  friend bool operator==(const PackNode&, const PackNode&) = default;
};

struct NodePacking {
  std::vector<SizeCounts> free;     // By GPU: the free slices that it should carry.
  std::vector<std::int64_t> rooms;  // By GPU: what is left.
  std::int64_t destroyed = 0;       // GiB of free slices that are given up.
  std::int64_t added = 0;           // GiB of new slices.
  [[nodiscard]] bool changed() const { return destroyed > 0 || added > 0; }
};

// Serves the demand in full, or nullopt. `sizes`: in GiB, ascending. Free slices serve first; new ones go where the
// fewest GiB of free slices are given up, then where the least room remains. The same input gives the same answer.
[[nodiscard]] std::optional<NodePacking> pack_node(const std::vector<std::int64_t>& sizes, const PackNode& node,
                                                   const SizeCounts& demand);

// --- Which pod is served on which node, and the slices that each node should carry for that: pure, and the same for
// equal input. Pods are served in their order: higher priority first, then smaller requests. All slices of a pod are
// on one node, or it gets none. Free slices serve first. Where a node must change, it is one that gives up the fewest
// GiB of free slices, then one that changes anyway, then one that is idle, then the one where the least room remains.
// A pod that finds no place may move another one. For few pods the answer is then compared with all others, within a
// bound.

struct PackPod {
  std::int32_t priority = 0;
  std::vector<std::int64_t> slices;  // GiB, ascending; each occurs in PackInput::sizes.
  std::size_t admission = 0;         // Index in PackInput::admissions.
  friend bool operator==(const PackPod&, const PackPod&) = default;
};

struct PackInput {
  std::vector<std::int64_t> sizes;  // GiB, ascending: of every free slice and every pod.
  std::vector<PackNode> nodes;
  std::vector<PackPod> pods;                         // In the order in which they are served.
  std::vector<std::vector<std::size_t>> admissions;  // Nodes that a pod can be on, ascending.
  bool prefer_busy = false;                          // Change nodes with used slices before idle ones.
  friend bool operator==(const PackInput&, const PackInput&) = default;
};

struct Packing {
  std::vector<std::optional<std::size_t>> node_of;  // By pod; nullopt: it is not served.
  std::vector<NodePacking> nodes;                   // By node.
};

// Nodes change only if more pods are served then.
[[nodiscard]] Packing pack(const PackInput& input);

// --- A partial answer of packing.h: which pods are where, and what one more would cost.

// What serving a pod on a node costs, the first difference decides.
struct PackCost {
  std::int64_t destroyed = 0;    // GiB of free slices given up.
  std::int64_t touched = 0;      // Nodes that change and did not before.
  std::int64_t disfavoured = 0;  // Such nodes that are busy (or idle: PackInput::prefer_busy).
  std::int64_t added = 0;        // GiB of new slices.
  std::int64_t left = 0;         // Room that remains on the GPUs that get them.
  friend auto operator<=>(const PackCost&, const PackCost&) = default;
};

class PackState {
 public:
  explicit PackState(const PackInput& input);

  const PackInput& input;
  std::vector<std::optional<std::size_t>> node_of;  // By pod.
  std::vector<std::vector<std::size_t>> pods_on;    // By node, in the order of their arrival.

  [[nodiscard]] const NodePacking& packing(std::size_t node) const { return nodes_[node].packing; }
  [[nodiscard]] const SizeCounts& demand(std::size_t node) const { return nodes_[node].demand; }
  // nullopt: the pod cannot be on the node beside the others there. Remembered until the node changes.
  [[nodiscard]] std::optional<PackCost> cost(std::size_t pod, std::size_t node);
  // The cheapest node for the pod, other than `except`; nullopt: none.
  struct Place {
    std::size_t node = 0;
    PackCost cost;
  };
  [[nodiscard]] std::optional<Place> best_place(std::size_t pod, std::optional<std::size_t> except = std::nullopt);
  // The pod fits on the node once `leaving` has left it.
  [[nodiscard]] bool fits_instead(std::size_t pod, std::size_t leaving, std::size_t node);

  void put(std::size_t pod, std::size_t node);  // It must fit.
  void take(std::size_t pod);
  void move(std::size_t pod, std::size_t node) {
    take(pod);
    put(pod, node);
  }
  // Pods with equal values ask for the same and can be on the same nodes.
  [[nodiscard]] std::size_t kind(std::size_t pod) const { return kinds_[pod]; }
  // Evaluations of nodes so far: the measure of work.
  [[nodiscard]] std::size_t work() const { return work_; }

 private:
  struct Answer {
    std::uint64_t version = 0;  // Of the node when it was found; 0: none yet.
    std::optional<PackCost> cost;
  };
  struct NodeState {
    SizeCounts demand;
    NodePacking packing;
  };
  [[nodiscard]] SizeCounts with(const SizeCounts& demand, std::size_t pod, std::int32_t by) const;
  [[nodiscard]] std::optional<PackCost> find_cost(std::size_t signature, std::size_t node);
  void set_demand(std::size_t node, SizeCounts demand);

  std::vector<NodeState> nodes_;
  std::vector<std::uint64_t> versions_;       // By node: counts its changes, from 1.
  std::vector<std::vector<Answer>> answers_;  // By signature and node, so that a pod's nodes lie side by side.
  std::vector<SizeCounts> signatures_;        // What a pod asks for.
  std::vector<std::size_t> signature_of_;
  std::vector<std::size_t> kinds_;
  std::size_t work_ = 0;
};

// Compares all answers for the pods, as far as `steps` go, and keeps the best one in `state` (packing.cc).
void search_exhaustively(PackState& state, std::size_t steps);

}  // namespace gso
