// A fleet with the device plugin, for tests of the whole operator: its profile, its pods and those that use GPUs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tests/controller/operators.h"

namespace gso {

// A profile of so many replicas.
std::string time_slicing(int replicas);

class PluginFleetTest : public ManagerTest {
 protected:
  using Json = nlohmann::json;

  // Its uid. `gpus`: its limit of nvidia.com/gpu, empty: none. `of_plugin`: of the plugin's DaemonSet.
  std::string create_pod(const std::string& ns, const std::string& name, const std::string& node,
                         const std::string& gpus, bool of_plugin);
  // The plugin's ConfigMap: key `any` time-slices into so many replicas.
  void create_config(int replicas);
  // The Node, which exists, runs four replicas of two GPUs, and has a pod of the plugin. `labels`: further ones.
  void add_sharing_node(const std::string& name, const Json& labels = Json::object());
  void merge(const std::string& path, const Json& body);
  Json get(const std::string& path);
};

}  // namespace gso
