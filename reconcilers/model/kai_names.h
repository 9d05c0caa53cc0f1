// Names that KAI-Scheduler and the operator's KAI reconcilers use. Facts of KAI's sources; values that a cluster can
// configure (namespace, app label, scheduler name) are in KaiConfig and have their defaults here.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "k8sclient/value/time.h"

namespace gso::kai {

// --- Labels and annotations of pods.
inline constexpr std::string_view kGroupLabel =
    "runai-gpu-group";  // Value: the group. Reservations and single-device consumers.
inline constexpr std::string_view kGroupPrefix =
    "runai-gpu-group/";  // Key "runai-gpu-group/<group>": multi-device consumers.
inline constexpr std::string_view kAppLabel = "app";
inline constexpr std::string_view kDeviceAnnotation =
    "run.ai/reserve_for_gpu_index";  // Holds a GPU's UUID, despite its name.
inline constexpr std::string_view kSharedConfigMap =
    "runai/shared-gpu-configmap";  // Prefix of a consumer's ConfigMaps.
inline constexpr std::string_view kVisibleDevices = "NVIDIA_VISIBLE_DEVICES";
inline constexpr std::string_view kFraction = "gpu-fraction";
inline constexpr std::string_view kMemory = "gpu-memory";
inline constexpr std::string_view kDeviceCount = "gpu-fraction-num-devices";
inline constexpr std::string_view kContainerName = "gpu-fraction-container-name";
// Mode NvFractions: "nvidia.com/container.<container>.gpu-memory.request|limit", ".gpu-compute.mode|portion" and
// ".gpus.devices". Names of containers have no dots.
inline constexpr std::string_view kNvFractionPrefix = "nvidia.com/container.";
[[nodiscard]] inline bool names_nv_fraction(std::string_view annotation) {
  if (!annotation.starts_with(kNvFractionPrefix)) return false;
  const std::string_view rest = annotation.substr(kNvFractionPrefix.size());
  return rest.find(".gpu-memory.") != std::string_view::npos || rest.find(".gpu-compute.") != std::string_view::npos ||
         rest.ends_with(".gpus.devices");
}

// --- Objects.
inline constexpr std::string_view kConfigName = "kai-config";
inline constexpr std::string_view kConfigCrd = "configs.kai.scheduler";
inline constexpr std::string_view kBindRequestCrd = "bindrequests.scheduling.run.ai";
inline constexpr std::string_view kBinder = "binder";  // Deployment, in the Config's spec.namespace.
inline constexpr std::string_view kBinderLease =
    "2ad35f9c.kai.scheduler";  // Exists if the binder has several replicas.

// --- Defaults of the Config.
inline constexpr std::string_view kDefaultNamespace = "kai-scheduler";
inline constexpr std::string_view kDefaultReservations = "kai-resource-reservation";  // Namespace and app label.
inline constexpr std::string_view kDefaultScaling = "kai-scale-adjust";               // Namespace of the scaling pods.
inline constexpr std::string_view kDefaultScheduler = "kai-scheduler";
inline constexpr std::string_view kDefaultRuntimeClass = "nvidia";
inline constexpr std::string_view kDefaultQueueLabel = "kai.scheduler/queue";
inline constexpr std::int64_t kDefaultAllocationTimeout = 40;      // Seconds.
inline constexpr std::int64_t kDefaultVolumeBindingTimeout = 120;  // Seconds.

// Key of the state ConfigMap: the last values seen in kai-config.
inline constexpr std::string_view kStateKey = "kai.json";

}  // namespace gso::kai
