// The rule by which nos's gpu-partitioner plans, as a model of its own: what it makes of the same nodes and pods. With
// its mistakes. Source: nebuly-ai/nos at 12e0a72, pkg/gpu/slicing and internal/partitioning/core.
#pragma once

#include <map>
#include <vector>

namespace gso::testing {

using NosSlices = std::map<int, int>;  // GB -> how many.

struct NosGpu {
  int spare = 0;  // GB without a slice.
  NosSlices free;
};

struct NosPod {
  int priority = 0;
  NosSlices slices;
};

using NosNode = std::vector<NosGpu>;

// The free slices that each GPU has after nos's plan, as nos numbers nodes: by name, here by index. Every node admits
// every pod.
[[nodiscard]] std::vector<NosNode> nos_plan(std::vector<NosNode> nodes, const std::vector<NosPod>& pods);

// The most pods that these free slices can serve, whoever gets them; all slices of a pod are on one node.
[[nodiscard]] int most_served(const std::vector<NosNode>& nodes, const std::vector<NosPod>& pods);

}  // namespace gso::testing
