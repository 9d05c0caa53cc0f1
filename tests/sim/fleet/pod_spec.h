// What kubelet needs of a pod, read from its JSON once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "k8sclient/value/object.h"

namespace gso::sim {

struct ContainerSpec {
  std::string name = {};
  std::string image = {};
  std::vector<std::string> command = {};           // And arguments.
  std::map<std::string, std::string> env = {};     // Literal values.
  std::map<std::string, std::string> mounts = {};  // mountPath -> volume.
  std::map<std::string, std::int64_t> gpus = {};   // Limits of nvidia.com/*.
  // terminationMessagePolicy: FallbackToLogsOnError, or what it says goes to its termination log.
  bool message_from_log = false;
};

struct PodSpec {
  k8s::ObjectKey key = {};
  std::string uid = {};
  std::string node = {};
  std::vector<ContainerSpec> init_containers = {};
  std::vector<ContainerSpec> containers = {};
  std::map<std::string, std::string> config_volumes = {};    // volume -> ConfigMap = {}; those that must exist.
  std::map<std::string, std::string> optional_volumes = {};  // The same, `optional: true`.
  std::map<std::string, std::int64_t> gpus = {};             // Summed over the containers.
  bool host_pid = false;
  std::string restart_policy = "Always";
  std::string owner_daemonset = {};
};

[[nodiscard]] PodSpec read_pod_spec(const nlohmann::json& pod);

}  // namespace gso::sim
