// Pods that cannot get well by themselves, known by the messages and states of their config-manager containers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/model/objects.h"

namespace gso {

struct NodePods;

struct PodFault {
  std::string_view name;  // CamelCase: the reason of its finding.
  std::string what;       // For people.
  Duration patience;      // It may pass by itself for this long.
};

// The init container and the sidecar that choose the profile: "config-manager-init" and "config-manager" of the GPU
// Operator, "nvidia-device-plugin-init", "…-sidecar" and their like of the device plugin's chart.
[[nodiscard]] bool is_config_manager(std::string_view container);

// What the pod suffers from, the first thing found. `projection`: how long a kubelet may take to show a new key.
[[nodiscard]] std::optional<PodFault> pod_fault_of(const Pod& pod, Duration projection);

// One of these pods suffers from something.
[[nodiscard]] bool may_have_pod_fault(const std::vector<const Pod*>& pods);

// For people: why these pods do not serve, as the first container that says something about it does; the first pod that
// is not Ready where none does, and that one is missing where all of them are.
[[nodiscard]] std::string first_problem(const NodePods& pods);

}  // namespace gso
