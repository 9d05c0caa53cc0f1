// KAI's objects as far as the operator reads them, their names, and which of them it wants to read.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/error.h"
#include "k8sclient/value/object.h"
#include "k8sclient/value/time.h"
#include "reconcilers/model/objects.h"

// --- Names that KAI-Scheduler and the operator's KAI reconcilers use. Facts of KAI's sources; values that a cluster
// can configure (namespace, app label, scheduler name) are in KaiConfig and have their defaults here.

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

namespace gso {

// --- Look-ups that KAI planners request before they decide.

// Answered in KaiWorld::lookups within the same or the next pass.
struct KaiWants {
  std::set<std::string> groups;          // Pods labelled runai-gpu-group/<group>, in all namespaces.
  std::set<k8s::ObjectKey> pods;         // Pods, to learn whether they are alive.
  std::set<k8s::ObjectKey> config_maps;  // Consumers' ConfigMaps: to learn which GPU they see.
  bool waiting_pods = false;             // Fraction pods without a node, and scaling pods.
  bool binder_lease = false;             // To learn since when the binder's replicas have had their leader.
  [[nodiscard]] bool empty() const {
    return groups.empty() && pods.empty() && config_maps.empty() && !waiting_pods && !binder_lease;
  }
  void merge(KaiWants other) {
    groups.merge(other.groups);
    pods.merge(other.pods);
    config_maps.merge(other.config_maps);
    waiting_pods = waiting_pods || other.waiting_pods;
    binder_lease = binder_lease || other.binder_lease;
  }
};

// --- KAI-Scheduler's objects, projected (project_kai_*.cc): only the fields that the KAI reconcilers read.

// configs.kai.scheduler/v1, the singleton `kai-config`. Absent fields stay empty: defaults depend on the CRD's schema
// (cluster/kai_view.h).
struct KaiConfig {
  ObjectMeta meta;
  std::string ns;  // spec.namespace: the namespace of KAI's Deployments.
  std::string scheduler_name;
  std::string queue_label_key;                        // spec.global.queueLabelKey
  std::optional<bool> gpu_sharing;                    // spec.admission.gpuSharing
  std::optional<std::string> gpu_sharing_mode;        // spec.global.gpuSharingMode
  std::optional<std::string> pod_runtime_class;       // spec.admission.gpuPodRuntimeClassName
  std::optional<std::string> fraction_runtime_class;  // spec.admission.gpuFractionRuntimeClassName
  std::string scale_namespace;                        // spec.nodeScaleAdjuster.args.nodeScaleNamespace
  std::string reservation_namespace;                  // spec.binder.resourceReservation.…
  std::string reservation_app_label;
  std::optional<std::string> reservation_runtime_class;
  std::optional<std::int64_t> allocation_timeout;      // Seconds.
  std::optional<std::int64_t> volume_binding_timeout;  // Seconds; spec.binder.volumeBindingTimeoutSeconds
  std::int64_t pull_secrets = 0;                       // Entries of spec.global.additionalImagePullSecrets.
  bool misspelt_pull_secret = false;                   // Has spec.global.imagesPullSecret, which KAI does not read.
  // Who last wrote each field ("spec.admission.gpuSharing" -> "kubectl-patch"), from managedFields.
  std::map<std::string, std::string> managers;
  friend bool operator==(const KaiConfig&, const KaiConfig&) = default;
};

// Which of the fields that changed over KAI's releases a CustomResourceDefinition offers
// ("spec.global.gpuSharingMode").
struct KaiSchema {
  ObjectMeta meta;
  std::set<std::string> fields;
  [[nodiscard]] bool has(std::string_view field) const { return fields.contains(std::string(field)); }
  friend bool operator==(const KaiSchema&, const KaiSchema&) = default;
};

// bindrequests.scheduling.run.ai/v1alpha2: the scheduler's order to the binder, named like its pod.
struct BindRequest {
  ObjectMeta meta;
  std::string pod_name;  // In the same namespace.
  Interned selected_node;
  std::vector<Interned> groups;  // selectedGPUGroups and selectedFractionalGpuGroups[].id
  std::optional<std::int64_t> backoff_limit;
  Interned phase;  // "", Pending, Succeeded, Failed
  std::int64_t failed_attempts = 0;
  friend bool operator==(const BindRequest&, const BindRequest&) = default;
};

// A pod as KAI sees it: a reservation, or a consumer of a shared GPU.
struct KaiPod {
  ObjectMeta meta;  // Labels: app and the group labels only. Annotations: KAI's and the operator's.
  Interned node_name;
  Interned phase;
  Interned reason;  // status.reason, e.g. UnexpectedAdmissionError, Evicted
  Interned scheduler_name;
  Interned waiting_reason;              // Of the first container that waits: ImagePullBackOff, …
  std::vector<Toleration> tolerations;  // Without temporary ones (tolerationSeconds).
  // "<index>" or "i<index>" of the container that gets the GPU: the suffix of the consumer's ConfigMap.
  Interned container_index;
  friend bool operator==(const KaiPod&, const KaiPod&) = default;
  // It is on a node, and can use its GPUs.
  [[nodiscard]] bool is_placed() const { return !node_name.empty(); }
};

// The availability of a Deployment.
struct Deployment {
  ObjectMeta meta;
  std::int64_t replicas = 1;
  std::int64_t observed_generation = 0;
  std::int64_t updated = 0;
  std::int64_t available = 0;
  bool available_condition = false;
  std::optional<WallTime> available_since;  // When that condition last changed.
  friend bool operator==(const Deployment&, const Deployment&) = default;
};

struct RuntimeClass {
  ObjectMeta meta;
  friend bool operator==(const RuntimeClass&, const RuntimeClass&) = default;
};

// JSON text of one object -> value; errors as in model/project.h.
k8s::Result<KaiConfig> project_kai_config(std::string_view json);
// The fields that people patch by hand, as text ("spec.admission.gpuSharing" -> "true"); absent ones are left out.
[[nodiscard]] std::map<std::string, std::string> followed_values(const KaiConfig& config);
k8s::Result<KaiSchema> project_kai_schema(std::string_view json);
k8s::Result<BindRequest> project_bind_request(std::string_view json);
k8s::Result<KaiPod> project_kai_pod(std::string_view json);
k8s::Result<Deployment> project_deployment(std::string_view json);
k8s::Result<RuntimeClass> project_runtime_class(std::string_view json);

}  // namespace gso
