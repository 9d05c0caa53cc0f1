// How a GPU is cut into slices, and which pods get them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gso {

// --- The slices of one node's GPUs for a demand: which free slices stay, which are given up, and what is added. Used
// slices are never part of it: a GPU's room is what they leave. Free slices are given up only as far as their room is
// needed, and never one that a pod of the demand, or one that is bound already, needs.

// Numbers of slices by size: the index counts in the list of sizes that all nodes and pods of one plan share.
using SizeCounts = std::vector<std::int32_t>;
// Of slices of these sizes, which are all among `sizes`.
[[nodiscard]] SizeCounts counts_of(const std::vector<std::int64_t>& sizes, std::span<const std::int64_t> slices);

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
  // Otherwise it only has its free slices. If it changes, GPUs whose room is negative give up free slices for that as
  // well, as far as they have them.
  bool changeable = false;
  bool busy = false;  // It has used slices.
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
  std::vector<NodePacking> nodes = {};              // By node.
  // So many of the first pods were put where it costs least; the others got the first place that was found, because the
  // work of a plan is bounded. Those from `planned` on got none for that reason.
  std::size_t compared = 0;
  std::size_t planned = 0;
  std::size_t work = 0;  // Evaluations of a node.
};

// Nodes change only if more pods are served then.
[[nodiscard]] Packing pack(const PackInput& input);

}  // namespace gso
