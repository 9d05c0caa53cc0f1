// KAI-Scheduler's objects, projected (project_kai_*.cc): only the fields that the KAI reconcilers read.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/error.h"
#include "reconcilers/model/objects.h"

namespace gso {

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

// A leader election's record.
struct Lease {
  ObjectMeta meta;
  std::string holder;
  std::optional<WallTime> acquired;
  friend bool operator==(const Lease&, const Lease&) = default;
};

struct RuntimeClass {
  ObjectMeta meta;
  friend bool operator==(const RuntimeClass&, const RuntimeClass&) = default;
};

// JSON text of one object -> value; errors as in model/project.h.
k8s::Result<KaiConfig> project_kai_config(std::string_view json);
k8s::Result<KaiSchema> project_kai_schema(std::string_view json);
k8s::Result<BindRequest> project_bind_request(std::string_view json);
k8s::Result<KaiPod> project_kai_pod(std::string_view json);
k8s::Result<Deployment> project_deployment(std::string_view json);
k8s::Result<RuntimeClass> project_runtime_class(std::string_view json);
k8s::Result<Lease> project_lease(std::string_view json);

}  // namespace gso
