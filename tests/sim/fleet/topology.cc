#include "tests/sim/fleet/topology.h"

#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tests/sim/fleet/kinds.h"
#include "tests/sim/fleet/manifest.h"
#include "tests/sim/fleet/nos_install.h"

namespace gso::sim {

using nlohmann::json;

namespace {

std::string numbered(const char* prefix, int number) {
  char name[48];
  std::snprintf(name, sizeof name, "%s-%02d", prefix, number);
  return name;
}

std::vector<Gpu> several(std::size_t count, const Gpu& gpu) {
  return std::vector<Gpu>(count, gpu);
}

std::vector<NodeSpec> demo() {
  std::vector<NodeSpec> nodes;
  for (int i = 1; i <= 8; ++i) {
    const std::size_t gpus = i <= 6 ? 8 : i == 7 ? 4 : 2;
    nodes.push_back({.name = numbered("a100", i), .gpus = several(gpus, a100())});
  }
  nodes.push_back({.name = "t4-01", .gpus = several(1, t4())});
  nodes.push_back({.name = "t4-02", .gpus = several(4, t4())});
  // MPS would not run there.
  nodes.push_back({.name = "mig-01", .gpus = several(2, a100_mig_1g()), .labels = {{kConfigLabel, kDemoTimeSlicing}}});
  // Installed by hand: no NFD, so neither feature discovery nor the GPU Operator; the administrator set what the
  // charts' selectors need, and says what hardware there is.
  NodeSpec edge{.name = "edge-01", .gpus = several(2, t4()), .nfd = false};
  edge.labels = {{kPoolLabel, "edge"}, {"nvidia.com/gpu.present", "true"}, {"nvidia.com/mps.capable", "true"}};
  edge.annotations = {{"gpusharing.dev/devices", devices_json(edge.gpus)}};
  nodes.push_back(std::move(edge));
  return nodes;
}

// A single node of kind is control plane and worker at once: it carries the role, and no taint.
std::vector<NodeSpec> kind() {
  return {{.name = "kind-control-plane",
           .gpus = several(2, t4()),
           .labels = {{"node-role.kubernetes.io/control-plane", ""}}}};
}

json standalone(const PluginInstall& install, const std::string& pool, bool mps) {
  const std::string image = "nvidia/k8s-device-plugin:" + install.plugin_version;
  const std::string base = mps ? "mps-control-daemon" : "nvidia-device-plugin";
  const json labels{{"app.kubernetes.io/name", "nvidia-device-plugin"}, {"app.kubernetes.io/instance", "nvdp"}};
  json main{
      {"name", base + "-ctr"},
      {"image", image},
      {"command", {base}},
      {"env", {env("CONFIG_FILE", "/config/config.yaml"), env("MPS_ROOT", "/run/nvidia/mps")}},
      {"volumeMounts",
       {mount("available-configs", "/available-configs"), mount("config", "/config"), mount("mps-root", "/mps")}}};
  ConfigManagerSpec manager{.name = base + "-init", .image = image, .default_key = install.default_key};
  manager.strategies = "named,single";
  const json init = config_manager(manager);
  manager.name = base + "-sidecar";
  manager.process = mps ? "/usr/bin/mps-control-daemon" : "nvidia-device-plugin";
  json spec{{"nodeSelector", {{kPoolLabel, pool}}},
            {"tolerations", gpu_tolerations()},
            {"priorityClassName", "system-node-critical"},
            {"initContainers", json::array()},
            {"containers", {main, config_manager(manager)}},
            {"volumes",
             {{{"name", "available-configs"}, {"configMap", {{"name", install.config_map}}}},
              {{"name", "config"}, {"emptyDir", json::object()}},
              {{"name", "mps-root"}, {"hostPath", {{"path", "/run/nvidia/mps"}}}}}}};
  const json present{{"key", "nvidia.com/gpu.present"}, {"operator", "In"}, {"values", {"true"}}};
  const json card{{"key", "feature.node.kubernetes.io/pci-10de.present"}, {"operator", "In"}, {"values", {"true"}}};
  spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] =
      json::array({{{"matchExpressions", json::array({card})}}, {{"matchExpressions", json::array({present})}}});
  if (mps) {
    spec["nodeSelector"]["nvidia.com/mps.capable"] = "true";
    spec["hostPID"] = true;
    spec["initContainers"].push_back(
        {{"name", "mps-control-daemon-mounts"}, {"image", image}, {"command", {"mps-control-daemon", "mount-shm"}}});
  } else {
    spec["shareProcessNamespace"] = true;
  }
  spec["initContainers"].push_back(init);
  const std::string name = std::string("nvdp-nvidia-device-plugin") + (mps ? "-mps-control-daemon" : "");
  return rolling_daemonset(install.ns, name, labels, spec);
}

}  // namespace

std::optional<std::vector<NodeSpec>> topology(std::string_view name) {
  if (name == "demo") return demo();
  if (name == "kind") return kind();
  const bool nos = name.starts_with("nos:");
  if (!nos && !name.starts_with("uniform:")) return std::nullopt;
  const std::string_view digits = name.substr(name.find(':') + 1);
  int count = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (error != std::errc() || end != digits.data() + digits.size() || count < 0) return std::nullopt;
  std::vector<NodeSpec> nodes;
  for (int i = 1; i <= count; ++i) {
    nodes.push_back(nos ? nos_node(numbered("nos", i), several(2, a100()))
                        : NodeSpec{.name = numbered("gpu", i), .gpus = several(8, a100())});
  }
  return nodes;
}

std::map<std::string, std::string> demo_profiles(const std::string& default_key) {
  const auto shared_by = [](const char* section) {
    return std::string("version: v1\nsharing:\n  ") + section +
           ":\n    resources:\n    - name: nvidia.com/gpu\n      replicas: 4\n";
  };
  return {{default_key, shared_by("mps")}, {kDemoTimeSlicing, shared_by("timeSlicing")}};
}

json cluster_policy(const PluginInstall& install) {
  const json on{{"enabled", true}};
  return {{"apiVersion", "nvidia.com/v1"},
          {"kind", "ClusterPolicy"},
          {"metadata", {{"name", "cluster-policy"}}},
          {"spec",
           {{"operator", json::object()},
            {"daemonsets", json::object()},
            {"driver", on},
            {"toolkit", on},
            {"dcgm", on},
            {"dcgmExporter", on},
            {"gfd", on},
            {"nodeStatusExporter", {{"enabled", false}}},
            {"mig", {{"strategy", "single"}}},
            {"devicePlugin",
             {{"enabled", true},
              {"repository", "nvidia"},
              {"image", "k8s-device-plugin"},
              {"version", install.plugin_version},
              {"config", {{"name", install.config_map}, {"default", install.default_key}}}}}}}};
}

std::vector<json> standalone_daemonsets(const PluginInstall& install, const std::string& pool) {
  return {standalone(install, pool, false), standalone(install, pool, true)};
}

json open_definition(const std::string& group, const std::string& plural, const std::string& kind,
                     const std::string& version, bool namespaced) {
  std::string singular = kind;
  for (char& c : singular) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  const json schema{{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
  return {{"apiVersion", "apiextensions.k8s.io/v1"},
          {"kind", "CustomResourceDefinition"},
          {"metadata", {{"name", plural + "." + group}}},
          {"spec",
           {{"group", group},
            {"scope", namespaced ? "Namespaced" : "Cluster"},
            {"names", {{"plural", plural}, {"singular", singular}, {"kind", kind}, {"listKind", kind + "List"}}},
            {"versions", json::array({{{"name", version},
                                       {"served", true},
                                       {"storage", true},
                                       {"subresources", {{"status", json::object()}}},
                                       {"schema", {{"openAPIV3Schema", schema}}}}})}}}};
}

json config_map(const std::string& ns, const std::string& name, const std::map<std::string, std::string>& data) {
  return {
      {"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", name}, {"namespace", ns}}}, {"data", data}};
}

}  // namespace gso::sim
