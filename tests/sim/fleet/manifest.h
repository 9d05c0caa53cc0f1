// Parts of the objects that the installations write.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tests/sim/fleet/kinds.h"

namespace gso::sim {

[[nodiscard]] inline nlohmann::json env(const char* name, const std::string& value) {
  return {{"name", name}, {"value", value}};
}
[[nodiscard]] inline nlohmann::json mount(const std::string& volume, const char* path) {
  return {{"name", volume}, {"mountPath", path}};
}

// The container that chooses a key of the ConfigMap mounted as `volume`; as a sidecar it signals `process`, as an init
// container (no process) it ends when it has chosen.
struct ConfigManagerSpec {
  std::string name, image, volume = "available-configs", default_key = {}, strategies = "empty", process = {};
};
[[nodiscard]] inline nlohmann::json config_manager(const ConfigManagerSpec& spec) {
  const bool sidecar = !spec.process.empty();
  return {{"name", spec.name},
          {"image", spec.image},
          {"command", {"config-manager"}},
          {"env",
           {env("ONESHOT", sidecar ? "false" : "true"), env("NODE_LABEL", kConfigLabel),
            env("CONFIG_FILE_SRCDIR", "/available-configs"), env("CONFIG_FILE_DST", "/config/config.yaml"),
            env("DEFAULT_CONFIG", spec.default_key), env("FALLBACK_STRATEGIES", spec.strategies),
            env("SEND_SIGNAL", sidecar ? "true" : "false"), env("SIGNAL", sidecar ? "1" : ""),
            env("PROCESS_TO_SIGNAL", spec.process)}},
          {"volumeMounts", {mount(spec.volume, "/available-configs"), mount("config", "/config")}}};
}

// A DaemonSet for GPU nodes that selects its pods by these labels and replaces one at a time.
[[nodiscard]] inline nlohmann::json rolling_daemonset(const std::string& ns, const std::string& name,
                                                      const nlohmann::json& labels, const nlohmann::json& pod_spec) {
  return {{"apiVersion", "apps/v1"},
          {"kind", "DaemonSet"},
          {"metadata", {{"name", name}, {"namespace", ns}, {"labels", labels}}},
          {"spec",
           {{"selector", {{"matchLabels", labels}}},
            {"updateStrategy", {{"type", "RollingUpdate"}, {"rollingUpdate", {{"maxUnavailable", 1}}}}},
            {"template", {{"metadata", {{"labels", labels}}}, {"spec", pod_spec}}}}}};
}
[[nodiscard]] inline nlohmann::json gpu_tolerations() {
  return nlohmann::json::array({{{"key", "nvidia.com/gpu"}, {"operator", "Exists"}, {"effect", "NoSchedule"}}});
}

}  // namespace gso::sim
