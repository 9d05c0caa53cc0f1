#include "tests/sim/fleet/nos_install.h"

#include <nlohmann/json.hpp>

#include "tests/sim/fleet/kinds.h"
#include "tests/sim/fleet/manifest.h"
#include "tests/sim/fleet/topology.h"

namespace gso::sim {

using nlohmann::json;

namespace {

json daemonset(const std::string& ns, const std::string& name, json spec) {
  spec["nodeSelector"][kPartitioningLabel] = "mps";
  spec["tolerations"] = gpu_tolerations();
  return rolling_daemonset(ns, name, {{"app.kubernetes.io/name", name}, {"app.kubernetes.io/instance", name}}, spec);
}

json plugin(const NosInstall& install) {
  const std::string image = "ghcr.io/nebuly-ai/k8s-device-plugin:" + install.plugin_version;
  const json main{{"name", kForkContainer},
                  {"image", image},
                  {"command", {"nvidia-device-plugin"}},
                  {"env", {env("CONFIG_FILE", "/config/config.yaml"), env("MIG_STRATEGY", "none")}},
                  {"volumeMounts", {mount("available-configs", "/available-configs"), mount("config", "/config")}}};
  const json sidecar = config_manager({.name = kForkManager, .image = image, .process = "nvidia-device-plugin"});
  const json spec{
      {"shareProcessNamespace", true},
      {"hostIPC", true},
      {"initContainers", json::array({config_manager({.name = "nvidia-device-plugin-init", .image = image})})},
      {"containers", json::array({sidecar, main})},
      {"volumes",
       {{{"name", "available-configs"}, {"configMap", {{"name", install.config_map}}}},
        {{"name", "config"}, {"emptyDir", json::object()}}}}};
  return daemonset(install.ns, kForkSet, spec);
}

json agent(const NosInstall& install) {
  const json main{{"name", "gpu-agent"}, {"image", "ghcr.io/nebuly-ai/nos-gpu-agent:0.1.2"}};
  return daemonset(install.ns, kAgentSet, {{"containers", json::array({main})}});
}

}  // namespace

std::vector<json> nos_manifests(const NosInstall& install, const std::map<std::string, std::string>& keys) {
  return {{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", install.ns}}}},
          config_map(install.ns, install.config_map, keys),
          plugin(install),
          agent(install)};
}

NodeSpec nos_node(const std::string& name, const std::vector<Gpu>& gpus, bool labelled) {
  NodeSpec node{.name = name, .gpus = gpus, .nfd = false};
  const auto found = discovery_labels({}, gpus);
  if (found) node.labels = *found;
  node.labels["nvidia.com/gpu.present"] = "true";
  if (labelled) node.labels[kPartitioningLabel] = "mps";
  return node;
}

std::string nos_document(const SliceCounts& slices) {
  std::string text =
      "version: v1\nflags:\n  migStrategy: \"none\"\nsharing:\n  mps:\n    failRequestsGreaterThanOne: true\n"
      "    resources:";
  std::string entries;
  for (const auto& [gpu, sizes] : slices) {
    for (const auto& [size, count] : sizes) {
      entries += "    - name: nvidia.com/gpu\n      rename: gpu-" + std::to_string(size) +
                 "gb\n      memoryGB: " + std::to_string(size) + "\n      replicas: " + std::to_string(count) +
                 "\n      devices: [\"" + std::to_string(gpu) + "\"]\n";
    }
  }
  return text + (entries.empty() ? " []\n" : "\n" + entries);
}

}  // namespace gso::sim
