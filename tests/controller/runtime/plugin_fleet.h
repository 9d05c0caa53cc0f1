// A fleet with the device plugin, for tests of the whole operator: its profile, its pods and those that use GPUs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tests/controller/operators.h"

namespace gso {

class PluginFleetTest : public ManagerTest {
 protected:
  using Json = nlohmann::json;

  static constexpr const char* kConfigMap = "/api/v1/namespaces/gpu-operator/configmaps/mps-config";

  // The plugin, and its ConfigMap: key `any` time-slices into so many replicas.
  explicit PluginFleetTest(int replicas = 4);
  // The revision of a profile of so many replicas.
  static std::string revision(int replicas);
  // The key time-slices into so many replicas from now on.
  void edit(int replicas = 2);
  // Its uid. `gpus`: its limit of nvidia.com/gpu, empty: none. `of_plugin`: of the plugin's DaemonSet.
  std::string create_pod(const std::string& ns, const std::string& name, const std::string& node,
                         const std::string& gpus, bool of_plugin = false);
  // The Node, which exists, runs four replicas of two GPUs, and has a pod of the plugin, whose uid is returned.
  // `labels`: further ones.
  std::string add_sharing_node(const std::string& name, const Json& labels = Json::object());
  void merge(const std::string& path, const Json& body) { ManagerTest::merge(path, body.dump()); }
  [[nodiscard]] Json annotations(const std::string& node);
  bool in_change(const std::string& node);
};

}  // namespace gso
