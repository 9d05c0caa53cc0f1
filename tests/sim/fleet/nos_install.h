// nos on a cluster, as an administrator installs it: the ConfigMap, Nebuly's fork of the device plugin and the
// gpu-agent for nodes with the label.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tests/sim/fleet/node_agent.h"
#include "tests/sim/fleet/site.h"

namespace gso::sim {

struct NosInstall {
  std::string ns = "nebuly-nvidia";
  std::string config_map = "nos-device-plugin-configs";
  std::string plugin_version = "0.13.0";
};

inline constexpr const char* kPartitioningLabel = "nos.nebuly.com/gpu-partitioning";
inline constexpr const char* kForkSet = "nvidia-device-plugin";  // Names of its DaemonSets and their containers.
inline constexpr const char* kForkContainer = "nvidia-device-plugin-ctr";
inline constexpr const char* kForkManager = "nvidia-device-plugin-sidecar";
inline constexpr const char* kAgentSet = "gpu-agent";

// The Namespace, the ConfigMap with `keys`, and the two DaemonSets, in the order in which they are applied.
[[nodiscard]] std::vector<nlohmann::json> nos_manifests(const NosInstall& install,
                                                        const std::map<std::string, std::string>& keys);
// A node with what feature discovery says of its GPUs, and with the label unless `labelled` is false.
[[nodiscard]] NodeSpec nos_node(const std::string& name, const std::vector<Gpu>& gpus, bool labelled = true);
// The document of the fork's format, as nos writes it.
[[nodiscard]] std::string nos_document(const SliceCounts& slices);

}  // namespace gso::sim
