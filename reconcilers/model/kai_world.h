// KAI's part of the World: its stores, and what is looked up on request (a group's multi-device consumers, one pod, one
// consumer's ConfigMap). Written by controller/watches and controller/kai, by `plan` from manifests, or by a test.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "k8sclient/value/interned.h"
#include "k8sclient/watch/store.h"
#include "reconcilers/model/kai_objects.h"

namespace gso {

// A pod without a node: a pod that requests a share of a GPU from KAI, or a pod of the namespace kai-scale-adjust.
struct WaitingPod {
  Pod pod;
  std::vector<Toleration> tolerations;  // Without temporary ones (tolerationSeconds).
};

// `at`: when it was asked.
struct LookupResults {
  struct Group {
    MonoTime at{};
    std::vector<KaiPod> pods;
  };
  struct Pod {
    MonoTime at{};
    bool alive = false;  // It exists and is neither Succeeded nor Failed.
  };
  struct Devices {
    MonoTime at{};
    bool known = false;   // The ConfigMap was read; false if it is forbidden or deleted.
    std::string devices;  // The value of NVIDIA_VISIBLE_DEVICES in the ConfigMap.
    // Uids of its owners. KAI sets the pod for which it wrote the ConfigMap as the owner; a pod whose manifest was
    // copied with its annotation names another pod's ConfigMap.
    std::vector<Interned> owners;
    [[nodiscard]] std::optional<std::string> of(const k8s::Uid& consumer) const;
  };
  struct Waiting {
    MonoTime at{};
    std::vector<WaitingPod> pods;
  };
  struct Lease {
    MonoTime at{};
    bool known = false;  // It exists.
    std::string holder;
    std::optional<WallTime> acquired;
  };
  // A deletion that did not happen: the final check did not confirm it, or the server refused it.
  struct Refusal {
    MonoTime at{};  // The last time.
    int count = 0;
  };
  std::map<std::string, Refusal> refusals;  // By uid of the reservation.
  std::map<std::string, Group> groups;
  std::map<ObjectKey, Pod> pods;
  std::map<ObjectKey, Devices> config_maps;
  std::optional<Waiting> waiting;
  std::optional<Lease> binder_lease;
};

struct KaiWorld {
  k8s::Store<KaiConfig> configs;
  k8s::Store<BindRequest> bind_requests;
  // Every pod with the label runai-gpu-group, in all namespaces, and those with the app label in the reservation
  // namespace.
  k8s::Store<KaiPod> pods;
  k8s::Store<Deployment> deployments;  // The binder.
  k8s::Store<RuntimeClass> runtime_classes;
  k8s::Store<KaiSchema> schemas;  // CRDs of Config and BindRequest; either can be missing (see schemas_known).
  LookupResults lookups;
  bool configs_served = false;
  bool bind_requests_served = false;
  bool schemas_known = false;  // The CRDs were looked for (in a cluster), so that an absent one is really absent.
  // The watches of pods, BindRequests and kai-config are complete and up to date: a pod that they do not have is on no
  // node (S8).
  bool use_known = true;
  // Why the view is incomplete or might be outdated, for people; empty: every store above is up to date.
  std::string incomplete;
};

// Settings of the KAI reconcilers.
enum class KaiGcMode { enforce, observe, off };
enum class MpsReadyMode { automatic, on, off };
struct KaiSettings {
  KaiGcMode gc_mode = KaiGcMode::enforce;
  // A reservation must be this old and have been seen orphaned for this long; longer if KAI's own timeouts are longer.
  k8s::Duration grace = std::chrono::seconds(300);
  k8s::Duration sweep = std::chrono::seconds(60);          // Orphans are checked again after this time.
  k8s::Duration waiting_sweep = std::chrono::minutes(5);   // Waiting pods are listed again after this time.
  k8s::Duration node_interval = std::chrono::seconds(60);  // Between two deletions on one node.
  std::int64_t deletions_per_pass = 16;                    // Over all nodes.
  // Look for leftovers of a KAI that was removed with its CRDs: costs one watch of the default reservation namespace.
  bool look_for_leftovers = false;
  // Whether nodes with an MPS daemon are marked for KAI's pods; automatic: if KAI's APIs are served.
  MpsReadyMode mps_ready = MpsReadyMode::automatic;
  bool explain_all = false;  // `plan`: a finding for healthy reservations too.
};

}  // namespace gso
