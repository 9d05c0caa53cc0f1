// Which pods of a node use its GPUs, and which were refused there.
#include <algorithm>

#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/kai_names.h"

namespace gso {

bool is_gpu_consumer(const Pod& pod, const World& world) {
  if (pod.phase == "Succeeded" || pod.phase == "Failed") return false;
  if (world.operand_pods.find(pod.meta.key()) != nullptr) return false;
  const bool requests = std::ranges::any_of(pod.gpu_requests, [](const auto& entry) { return entry.second > 0; });
  // KAI's fractions are annotations and a group: the GPU itself is requested by their reservation pod.
  const bool fraction = pod.meta.labels.contains(kai::kGroupLabel) || pod.meta.annotations.contains(kai::kFraction) ||
                        pod.meta.annotations.contains(kai::kMemory);
  if (requests || pod.uses_mps_pipe || pod.dra_gpu_claim || fraction) return true;
  // The NVIDIA stack's other DaemonSets (DCGM, validator, driver) see all devices and are none of their clients.
  const auto* owner = pod.meta.controller();
  const bool sees_devices = pod.nvidia_visible_devices || pod.runtime_class == "nvidia";
  return sees_devices && !(owner != nullptr && owner->kind == "DaemonSet");
}

bool is_rejected(const Pod& pod, const PlannerSettings& settings) {
  const auto* owner = pod.meta.controller();
  // DaemonSets clean up after themselves, and mirror pods are files on the node.
  const bool remade = owner != nullptr && owner->kind != "DaemonSet" && owner->kind != "Node";
  return pod.phase == "Failed" && pod.reason == "UnexpectedAdmissionError" && remade &&
         std::ranges::any_of(pod.gpu_requests, [](const auto& entry) { return entry.second > 0; }) &&
         settings.remove_rejected_pods.contains(std::string(pod.meta.ns.view()));
}

}  // namespace gso
