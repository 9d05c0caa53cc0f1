// The three DaemonSets of the GPU Operator, reduced to what decides how sharing behaves.
#include <nlohmann/json.hpp>

#include "tests/sim/fleet/gpu_operator.h"
#include "tests/sim/fleet/json_view.h"
#include "tests/sim/fleet/manifest.h"

namespace gso::sim {

using nlohmann::json;

namespace {

struct OperandFacts {
  const char* daemonset;
  const char* deploy_label;
  const char* container;
  const char* command;
  const char* process_to_signal;
};

OperandFacts facts_of(Operand operand) {
  switch (operand) {
    case Operand::device_plugin:
      return {"nvidia-device-plugin-daemonset", "nvidia.com/gpu.deploy.device-plugin", "nvidia-device-plugin",
              "nvidia-device-plugin", "nvidia-device-plugin"};
    case Operand::mps_control_daemon:
      return {"nvidia-device-plugin-mps-control-daemon", "nvidia.com/gpu.deploy.device-plugin",
              "mps-control-daemon-ctr", "mps-control-daemon", "/usr/bin/mps-control-daemon"};
    case Operand::feature_discovery:
      break;
  }
  return {"gpu-feature-discovery", "nvidia.com/gpu.deploy.gpu-feature-discovery", "gpu-feature-discovery",
          "gpu-feature-discovery", "gpu-feature-discovery"};
}

json host_path(const char* name, const char* path) {
  return {{"name", name}, {"hostPath", {{"path", path}}}};
}

json main_container(Operand operand, const OperandFacts& facts, const std::string& image, const json& policy) {
  json container{{"name", facts.container},
                 {"image", image},
                 {"command", {facts.command}},
                 {"env", json::array()},
                 {"volumeMounts", json::array()}};
  const std::string mig = policy["spec"].value("mig", json::object()).value("strategy", "");
  if (!mig.empty() && operand != Operand::mps_control_daemon) container["env"].push_back(env("MIG_STRATEGY", mig));
  if (operand == Operand::device_plugin) {
    container["env"].push_back(env("MPS_ROOT", "/run/nvidia/mps"));
    container["env"].push_back(env("PASS_DEVICE_SPECS", "true"));
    container["env"].push_back(env("NVIDIA_VISIBLE_DEVICES", "all"));
    container["volumeMounts"].push_back(mount("device-plugin", "/var/lib/kubelet/device-plugins"));
  }
  if (operand != Operand::feature_discovery) {
    container["volumeMounts"].push_back(mount("mps-root", "/mps"));
    container["volumeMounts"].push_back(mount("mps-shm", "/dev/shm"));
  }
  return container;
}

json pod_spec(Operand operand, const OperandFacts& facts, const std::string& image, const json& policy) {
  json spec{{"nodeSelector", {{facts.deploy_label, "true"}}},
            {"tolerations", gpu_tolerations()},
            {"priorityClassName", "system-node-critical"}};
  json check{{"name", "toolkit-validation"}, {"image", image}, {"command", {"sh", "-c"}}};
  spec["initContainers"] = json::array({check});
  spec["volumes"] = json::array();
  if (operand == Operand::device_plugin)
    spec["volumes"].push_back(host_path("device-plugin", "/var/lib/kubelet/device-plugins"));
  if (operand != Operand::feature_discovery) {
    spec["volumes"].push_back(host_path("mps-root", "/run/nvidia/mps"));
    spec["volumes"].push_back(host_path("mps-shm", "/run/nvidia/mps/shm"));
  }
  if (operand == Operand::mps_control_daemon) {
    spec["nodeSelector"]["nvidia.com/mps.capable"] = "true";
    spec["hostPID"] = true;
    json mounts{
        {"name", "mps-control-daemon-mounts"}, {"image", image}, {"command", {"mps-control-daemon", "mount-shm"}}};
    spec["initContainers"].push_back(mounts);
  }
  json main = main_container(operand, facts, image, policy);
  const json config = policy["spec"]["devicePlugin"].value("config", json::object());
  const std::string config_map = config.value("name", "");
  if (config_map.empty()) {
    spec["containers"] = json::array({main});
    return spec;
  }
  // The volume is named like the ConfigMap.
  ConfigManagerSpec manager{.name = "config-manager-init", .image = image, .volume = config_map};
  manager.default_key = config.value("default", "");
  main["env"].push_back(env("CONFIG_FILE", "/config/config.yaml"));
  main["volumeMounts"].push_back(mount(config_map, "/available-configs"));
  main["volumeMounts"].push_back(mount("config", "/config"));
  spec["initContainers"].push_back(config_manager(manager));
  manager.name = "config-manager";
  manager.process = facts.process_to_signal;
  spec["containers"] = json::array({main, config_manager(manager)});
  spec["volumes"].push_back({{"name", config_map}, {"configMap", {{"name", config_map}}}});
  spec["volumes"].push_back({{"name", "config"}, {"emptyDir", json::object()}});
  if (operand != Operand::mps_control_daemon) spec["shareProcessNamespace"] = true;
  return spec;
}

json update_strategy(const json& policy) {
  const json daemonsets = policy["spec"].value("daemonsets", json::object());
  if (daemonsets.value("updateStrategy", "RollingUpdate") == "OnDelete") return {{"type", "OnDelete"}};
  json strategy{{"type", "RollingUpdate"}};
  const std::string most = daemonsets.value("rollingUpdate", json::object()).value("maxUnavailable", "1");
  if (most.ends_with('%'))
    strategy["rollingUpdate"]["maxUnavailable"] = most;
  else
    strategy["rollingUpdate"]["maxUnavailable"] = std::stoi(most);
  return strategy;
}

}  // namespace

json operand_daemonset(Operand operand, const json& policy, const std::string& ns) {
  const OperandFacts facts = facts_of(operand);
  const json plugin = policy["spec"]["devicePlugin"];
  const std::string repository = plugin.value("repository", "nvidia");
  const std::string image =
      repository + "/" + plugin.value("image", "k8s-device-plugin") + ":" + plugin.value("version", "v0.20.0");
  json labels{{"app", facts.daemonset}};
  if (operand == Operand::feature_discovery) labels["app.kubernetes.io/part-of"] = "nvidia-gpu";
  json daemonset = rolling_daemonset(ns, facts.daemonset, labels, pod_spec(operand, facts, image, policy));
  daemonset["spec"]["updateStrategy"] = update_strategy(policy);
  daemonset["metadata"]["ownerReferences"] = json::array({{{"apiVersion", "nvidia.com/v1"},
                                                           {"kind", "ClusterPolicy"},
                                                           {"name", policy["metadata"].value("name", "")},
                                                           {"uid", policy["metadata"].value("uid", "")},
                                                           {"controller", true},
                                                           {"blockOwnerDeletion", true}}});
  daemonset["metadata"]["annotations"]["nvidia.com/last-applied-hash"] = fingerprint(daemonset);
  return daemonset;
}

}  // namespace gso::sim
