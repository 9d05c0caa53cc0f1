// What one node of the story must show under a profile, and what it shows instead. Computed from the fleet's own model
// of the hardware, not from the operator's prediction.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tests/sim/fleet/node_agent.h"
#include "tests/sim/story/cluster_view.h"

namespace gso::sim {

struct NodeExpectation {
  std::map<std::string, std::int64_t> allocatable;  // Every other nvidia.com/* must be 0.
  std::map<std::string, std::string> labels;        // replicas, product, sharing-strategy, mps.capable
  bool mps = false;
};

// nullopt when the profile cannot work on that node.
[[nodiscard]] std::optional<NodeExpectation> expect_node(const NodeSpec& node, const std::string& profile,
                                                         const std::string& plugin_version,
                                                         const std::string& mig_strategy);

// Empty when the node shows what is expected, is schedulable, and its plugin (and MPS) pods are Ready; else what
// differs, for people.
[[nodiscard]] std::string difference(const ClusterView& view, const std::string& node,
                                     const NodeExpectation& expectation);

// "nvidia.com/gpu=32 mps x4 Tesla-T4-SHARED"
[[nodiscard]] std::string shown(const ClusterView& view, const std::string& node);

}  // namespace gso::sim
