// Which pod is served on which node, and the slices that each node should carry for that: pure, and the same for equal
// input.
//
// Pods are served in their order: higher priority first, then smaller requests. All slices of a pod are on one node, or
// it gets none. Free slices serve first. Where a node must change, it is one that gives up the fewest GiB of free
// slices, then one that changes anyway, then one that is idle, then the one where the least room remains. A pod that
// finds no place may move another one. For few pods the answer is then compared with all others, within a bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "reconcilers/partitioning/node_packing.h"

namespace gso {

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

}  // namespace gso
