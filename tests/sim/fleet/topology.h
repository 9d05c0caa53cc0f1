// Fleets by name, and the objects that an administrator applies to get one going: the ConfigMap, the ClusterPolicy, and
// a device plugin installed without the GPU Operator.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tests/sim/fleet/node_agent.h"

namespace gso::sim {

// "demo": twelve nodes (eight with A100s, two with T4s, one MIG single, one that only a standalone plugin serves).
// "kind": one node with two GPUs, as on a laptop. "uniform:N": N nodes with eight A100s each. "nos:N": N nodes with two
// A100s each, whose GPUs nos partitions.
[[nodiscard]] std::optional<std::vector<NodeSpec>> topology(std::string_view name);
// The names that topology() takes, for messages.
inline constexpr std::string_view kTopologies = "demo, kind, uniform:N, nos:N";

// The label value that selects the nodes of the standalone plugin, under kPoolLabel.
inline constexpr const char* kPoolLabel = "example.com/gpu-pool";

// What "demo" runs: four MPS replicas by default, and "slices", which the label of its MIG node names.
inline constexpr const char* kDemoTimeSlicing = "slices";
[[nodiscard]] std::map<std::string, std::string> demo_profiles(const std::string& default_key);

struct PluginInstall {
  std::string ns = "gpu-operator";
  std::string config_map = "mps-config";
  std::string default_key = "any";
  std::string plugin_version = "v0.20.0";  // Image tag.
};

// spec.devicePlugin.config as in `install`, MIG strategy single.
[[nodiscard]] nlohmann::json cluster_policy(const PluginInstall& install);
// The device plugin chart's DaemonSets (plugin and MPS, both with the same labels) for nodes with kPoolLabel=`pool`.
[[nodiscard]] std::vector<nlohmann::json> standalone_daemonsets(const PluginInstall& install, const std::string& pool);
// A CustomResourceDefinition that takes any object: group, plural, kind, version, scope, with a status subresource.
[[nodiscard]] nlohmann::json open_definition(const std::string& group, const std::string& plural,
                                             const std::string& kind, const std::string& version, bool namespaced);
[[nodiscard]] nlohmann::json config_map(const std::string& ns, const std::string& name,
                                        const std::map<std::string, std::string>& data);

}  // namespace gso::sim
