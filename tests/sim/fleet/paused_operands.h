// What a driver upgrade and the MIG manager take off a node while they work on its GPUs, and how they see that it is
// gone.
#pragma once

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/sim/fleet/json_view.h"
#include "tests/sim/fleet/site.h"

namespace gso::sim {

// The labels by which their DaemonSets select nodes.
inline constexpr std::array kPausedLabels{"nvidia.com/gpu.deploy.device-plugin",
                                          "nvidia.com/gpu.deploy.gpu-feature-discovery"};

[[nodiscard]] inline bool paused_operands_run(const Site& site, const std::string& node) {
  static constexpr std::array kSets{"nvidia-device-plugin-daemonset", "nvidia-device-plugin-mps-control-daemon",
                                    "gpu-feature-discovery"};
  return std::ranges::any_of(site.pods.all(), [&node](const auto& entry) {
    const nlohmann::json& owners = items(metadata(*entry.second), "ownerReferences");
    return node_of(*entry.second) == node && std::ranges::any_of(owners, [](const nlohmann::json& owner) {
             return std::ranges::find(kSets, text(owner, "name")) != kSets.end();
           });
  });
}

}  // namespace gso::sim
