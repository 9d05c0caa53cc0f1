// KAI as it is configured, and the pods that do its work.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/model/kai_world.h"

namespace gso {

// --- What kai-config means: absent fields get the defaults of the installed KAI, which the CRD's live schema shows
// (never a version).

// How KAI shares GPUs now.
struct KaiSharing {
  bool enabled = false;  // Admission lets fraction pods in.
  // By HAMi-core, or by the operator of NvFractions.
  [[nodiscard]] bool limits_memory() const;
  std::string mode;  // NonMemoryEnforced, HamiCore, NvFractions, Disabled; empty if this KAI has no modes.
  std::string
      decided_by;  // The field that decides: "spec.admission.gpuSharing", "spec.global.gpuSharingMode", "default"
};

// A mode with annotations of its own, which also reads those of the others (docs/gpu-sharing/README.md, "Choose an
// annotation style"; resources.ValidateGPUFractionRequest); and what is said of it.
inline constexpr std::string_view kNvFractions = "NvFractions";
inline constexpr std::string_view kAsksNvFractions =
    "KAI's mode is NvFractions: GPU sharing is on, and takes the annotation "
    "nvidia.com/container.<container>.gpu-memory.request; gpu-fraction and gpu-memory are read for older manifests";

struct KaiView {
  bool served = false;      // At least one of KAI's two APIs is installed.
  bool configured = false;  // kai-config exists; without it the defaults apply.
  KaiSharing sharing;
  std::string ns;  // Namespace of KAI's Deployments.
  std::string scheduler_name;
  std::string queue_label;   // Key of the pod label that names the queue.
  std::string reservations;  // Namespace of the reservation pods.
  std::string app_label;     // Value of their label `app`.
  std::string scaling;       // Namespace of the node-scale-adjuster's scaling pods.
  Duration bind_timeout{0};  // allocationTimeout + volumeBindingTimeoutSeconds: no bind takes longer.
  Duration grace{0};         // The longer of settings and bind_timeout.
  // RuntimeClasses that KAI puts into pods, with the field that names them. Empty fields (off) are left out.
  std::vector<std::pair<std::string, std::string>> runtime_classes;
  // Not empty: why the schema is not supported, so that reservations are only observed.
  std::string unrecognised;
  // Changes if the rules for reservations or the longest duration of a bind change.
  std::string signature;
};

[[nodiscard]] KaiView view_kai(const KaiWorld& kai, const KaiSettings& settings);

// KAI has placed the pod: its scheduler's name is the pod's, or a BindRequest names the pod. Else whoever can create
// pods has put KAI's marks on it.
[[nodiscard]] bool is_placed_by_kai(const KaiWorld& kai, const KaiView& view, std::string_view scheduler,
                                    const ObjectKey& pod);

// Why the binder is not reliable now, for people; empty if its Deployment is available and settled, or if no kai-config
// says that one must exist. `now` and `quiet`: its Available condition must be older.
[[nodiscard]] std::string binder_trouble(const KaiWorld& kai, const KaiView& view, WallTime now, Duration quiet);

// The binder has several replicas, so a Lease decides which of them binds.
[[nodiscard]] bool elects_leader(const KaiWorld& kai, const KaiView& view);
// Why, according to that Lease, the same binder has not led for long enough; a replica that takes over synchronises
// every group. Empty also without such a Lease: then only the Deployment decides.
[[nodiscard]] std::string lease_trouble(const LookupResults::Lease& lease, WallTime now, Duration quiet);

// --- The roles of KAI's pods and BindRequests, each classified on its own.

// A pod's role for KAI, under the present kai-config.
enum class KaiRole {
  none,         // Has no group.
  reservation,  // Namespace, app label and group label all match.
  unlabelled,   // A reservation that lost its group label: KAI no longer sees it.
  consumer,     // Every other pod with a group, in any namespace.
};
[[nodiscard]] KaiRole role_of(const KaiPod& pod, const KaiView& view);
// Looks like a reservation, but is none under the present kai-config: it is outside the configured namespace (from an
// earlier configuration, or a user's pod; for KAI it is a consumer), or in that namespace with another app label (the
// binder, which checks the namespace only, still treats it as a reservation).
[[nodiscard]] bool is_leftover(const KaiPod& pod, const KaiView& view);
// The pod exists and is neither Succeeded nor Failed: Unknown, Pending and terminating pods are alive.
[[nodiscard]] bool is_alive(const KaiPod& pod);
// Groups that these labels of a pod name, as the value of runai-gpu-group or in a key runai-gpu-group/<group>; for a
// pod with the plain label also the value of such a key, in case a person edited it. Without duplicates.
[[nodiscard]] std::vector<std::string> groups_of(const k8s::StringMap& labels);
// Groups that the pod belongs to in its role: a consumer to all groups that it names, a reservation only to the group
// of the plain label (KAI reads no other), an unlabelled one to none.
[[nodiscard]] std::vector<std::string> groups_in_role(const KaiPod& pod, KaiRole role);
// Failed without a remaining attempt: the scheduler will delete it, and no pod is bound by it.
[[nodiscard]] bool is_terminally_failed(const BindRequest& request);

}  // namespace gso
