// What kai-config means: absent fields filled in as the installed KAI fills them in, which the CRD's live schema tells
// (never a version).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reconcilers/model/kai_world.h"

namespace gso {

// How KAI shares GPUs now.
struct KaiSharing {
  bool enabled = false;  // Admission lets fraction pods in.
  std::string mode;      // NonMemoryEnforced, HamiCore, NvFractions, Disabled; empty where KAI knows no modes.
  std::string
      decided_by;  // The field that decides: "spec.admission.gpuSharing", "spec.global.gpuSharingMode", "default"
};

struct KaiView {
  bool served = false;      // At least one of KAI's two APIs is.
  bool configured = false;  // kai-config is there; without it the defaults hold.
  KaiSharing sharing;
  std::string ns;  // KAI's Deployments.
  std::string scheduler_name;
  std::string queue_label;   // Key of the pod label that names the queue.
  std::string reservations;  // Namespace of the reservation pods.
  std::string app_label;     // Value of their label `app`.
  std::string scaling;       // Namespace of the node-scale-adjuster's scaling pods.
  Duration bind_timeout{0};  // allocationTimeout + volumeBindingTimeoutSeconds: no bind in flight lasts longer.
  Duration grace{0};         // The longer of settings and bind_timeout.
  // RuntimeClasses that KAI puts into pods, with the field that names them. Off (empty) ones are left out.
  std::vector<std::pair<std::string, std::string>> runtime_classes;
  // Not empty: why the schema is none that we know, so that reservations are observed, not collected.
  std::string unrecognised;
  // Changes when the answer to "what is a reservation, and how long does a bind take" does.
  std::string signature;
};

[[nodiscard]] KaiView view_kai(const KaiWorld& kai, const KaiSettings& settings);

// Why the binder is not to be relied on now, for people; empty when its Deployment is available and settled, or when
// there is no kai-config to say that one should be there. `now` and `quiet`: its Available condition must be older.
[[nodiscard]] std::string binder_trouble(const KaiWorld& kai, const KaiView& view, WallTime now, Duration quiet);

// The binder has several replicas, so that a Lease says which of them binds.
[[nodiscard]] bool elects_leader(const KaiWorld& kai, const KaiView& view);
// Why that Lease says that the binder has not been the same for long enough; a replica that takes over synchronises
// every group. Empty also where there is no such Lease: the Deployment alone tells then.
[[nodiscard]] std::string lease_trouble(const KaiLookups::Lease& lease, WallTime now, Duration quiet);

}  // namespace gso
