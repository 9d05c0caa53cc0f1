// A fleet of one node under the GPU Operator, and profiles for it.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/sim/fleet/kinds.h"
#include "tests/sim/fleet/test_cluster.h"

namespace gso::sim {

inline const std::string kGpu = "nvidia.com/gpu";
inline const std::string kNode = "gpu-01";

inline std::string profile(const std::string& section, int replicas, const std::string& fields = "") {
  return "version: v1\nsharing:\n  " + section + ":\n" + fields +
         "    resources:\n    - name: nvidia.com/gpu\n      replicas: " + std::to_string(replicas) + "\n";
}
inline std::string mps(int replicas) {
  return profile("mps", replicas);
}
inline std::string slices(int replicas) {
  return profile("timeSlicing", replicas);
}

inline FleetOptions one_node(std::vector<Gpu> gpus = {t4(), t4()}) {
  FleetOptions options;
  options.nodes = {{.name = kNode, .gpus = std::move(gpus)}};
  options.timing.heartbeat = std::chrono::seconds(0);
  return options;
}

// A node of a GPU Operator installation that has come up with its default profile.
class OneNode : public TestCluster {
 public:
  OneNode(const std::string& version, const std::map<std::string, std::string>& profiles, const std::string& fallback,
          std::int64_t expected, std::vector<Gpu> gpus = {t4(), t4()})
      : TestCluster(one_node(std::move(gpus))) {
    install({.default_key = fallback, .plugin_version = version}, profiles);
    EXPECT_TRUE(eventually([&] { return allocatable(kNode, kGpu) == expected && operands_ready(); }))
        << "allocatable is " << allocatable(kNode, kGpu);
    pass(std::chrono::minutes(1));
  }
  bool operands_ready() const {
    return !container(kNode, kPluginSet, "nvidia-device-plugin").is_null() &&
           server.get(kNodes, {"", kNode}).has_value();
  }
  std::int64_t restarts(const char* daemonset, const char* name) const {
    const nlohmann::json status = container(kNode, daemonset, name);
    return status.is_null() ? -1 : status.value("restartCount", std::int64_t{-1});
  }
};

}  // namespace gso::sim
