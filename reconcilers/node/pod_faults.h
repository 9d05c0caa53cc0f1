// Pods with a fault that only a new pod fixes, recognised by the messages and states of their config-manager
// containers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "reconcilers/model/objects.h"

namespace gso {

struct NodePods;

struct PodFault {
  std::string_view name;  // CamelCase: the reason of its finding.
  std::string what;       // For people.
  Duration patience;      // How long to wait, because the fault might end by itself.
  // The container runs again since then, after it has failed: between two crashes, or for good.
  std::optional<WallTime> runs_since{};
  // It has run for so long that the fault is over.
  [[nodiscard]] bool is_over(WallTime now) const { return runs_since && now - *runs_since >= kProvesRecovery; }
  static constexpr Duration kProvesRecovery = std::chrono::minutes(1);
};

// The init container and the sidecar that choose the profile: "config-manager-init" and "config-manager" of the GPU
// Operator, "nvidia-device-plugin-init", "…-sidecar" and their like of the device plugin's chart.
[[nodiscard]] bool is_config_manager(std::string_view container);

// The first fault found in the pod, also if it is over by now (is_over()). `projection`: how long a kubelet takes at
// most to show a new key.
[[nodiscard]] std::optional<PodFault> pod_fault_of(const Pod& pod, Duration projection);

// For people: the state of the first pod that does not serve, in the words of its first container with a message, else
// that it is not Ready. If every pod serves: that a pod is missing.
[[nodiscard]] std::string first_problem(const NodePods& pods);

}  // namespace gso
