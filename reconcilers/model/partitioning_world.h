// What dynamic MPS partitioning reads beside Nodes, DaemonSets and ConfigMaps: pods that ask for slices of a GPU's
// memory (nvidia.com/gpu-<N>gb), and the Lease of nos's gpu-partitioner. Written by controller/watches, by `plan` from
// manifests, or by a test. Planned by reconcilers/partitioning.
//
// What must be watched, if a Node is labelled for partitioning (partitioned_nodes() in cluster/other_systems.h), and
// nothing otherwise:
// - pods without a node (field selector spec.nodeName=,status.phase=Pending), and for each of these nodes the pods that
//   are bound to it (spec.nodeName=<node>). All of them go into `pods`, by project_slice_pod().
// - Leases with the name kPartitionerLease, in all namespaces, into `leases`.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "k8sclient/watch/store.h"
#include "reconcilers/model/objects.h"

namespace gso {

// The Lease that nos's gpu-partitioner renews while it runs.
inline constexpr std::string_view kPartitionerLease = "gpu-partitioner.nebuly.com";

// No runAsUser: the image decides.
inline constexpr std::int64_t kUserOfImage = -1;

// What one container asks for.
struct SliceRequest {
  std::string container;
  std::int64_t gigabytes = 0;  // N of nvidia.com/gpu-<N>gb, at least 1. A slice of N has N GiB.
  std::int64_t count = 0;
  std::int64_t user = kUserOfImage;  // runAsUser, of the container or else of its pod.
  friend bool operator==(const SliceRequest&, const SliceRequest&) = default;
};

// What a pod asks for beside extended resources, as the scheduler counts it: with its init containers and its overhead.
struct PodNeeds {
  std::int64_t cpu = 0;     // Thousandths of a CPU.
  std::int64_t memory = 0;  // Bytes.
  friend bool operator==(const PodNeeds&, const PodNeeds&) = default;
};

// What a pod of nos's gpu-agent says of itself. The agent writes the slices of its node on the Node.
struct SliceAgent {
  bool ready = false;             // It runs, is ready and is not being deleted.
  std::optional<WallTime> since;  // Since when, without a restart; nullopt: it is not ready, or the pod does not say.
  friend bool operator==(const SliceAgent&, const SliceAgent&) = default;
};

// A pod as partitioning sees it. Every pod of a partitioned node is one, also without a slice. One that asks for no GPU
// and no slice has no labels, selectors and tolerations.
struct SlicePod {
  ObjectMeta meta;  // With its labels and without annotations.
  Interned node_name;
  Interned phase;
  Interned nominated_node;
  std::int32_t priority = 0;
  bool unschedulable = false;       // PodScheduled is False with the reason Unschedulable.
  bool lacks_no_slice = false;      // The same, and kube-scheduler's message says what it lacks: no GPU or slice.
  std::optional<WallTime> bound;    // When its kubelet took it, or before that when it was bound; nullopt: unknown.
  RareList<SliceRequest> requests;  // Of each container that asks for slices, init containers included.
  RareList<std::int64_t> slices;    // What the scheduler counts: the size in GiB of every slice, ascending.
  PodNeeds needs;
  // Requests nvidia.com/gpu, another name that begins with that and is no slice, or nvidia.com/mig-*. Other resources
  // of nvidia.com do not count.
  bool uses_whole_gpus = false;
  bool own_ipc = false;  // Asks for slices, and has no hostIPC.
  RareList<StringMap::Entry> node_selector;
  RareList<std::vector<NodeSelectorRequirement>> affinity_terms;  // Required node affinity: OR of ANDs.
  RareList<Toleration> tolerations;
  Rare<SliceAgent> agent;  // Of a pod of nos's gpu-agent.
  friend bool operator==(const SlicePod&, const SlicePod&) = default;
};

struct PartitioningWorld {
  k8s::Store<SlicePod> pods;
  k8s::Store<Lease> leases;
  // The watch of pods without a node, and that of the Leases, are complete and up to date. While one is not, nothing is
  // planned.
  bool pending_known = false;
  bool leases_known = false;
  // Nodes whose pods are all known: the watch of their pods is complete and up to date. Other nodes are left alone.
  std::set<std::string> nodes_known;
  // Why the view is incomplete, for people; empty: nothing is missing.
  std::string incomplete;
};

// Settings of node.partitioning.
struct PartitioningSettings {
  // The batch window: pods that come within `batch_idle` of each other are planned for together, and no pod waits for
  // longer than `batch_timeout`.
  Duration batch_timeout = std::chrono::seconds(60);
  Duration batch_idle = std::chrono::seconds(10);
  // A node must report the slices of a new key within this time, or its label returns to the key before. nos's device
  // plugin can crash at a change and then waits for up to five minutes before it starts again.
  Duration confirm_timeout = std::chrono::minutes(15);
  // What the driver and the MPS server use of each GPU, in MiB: not given to slices. At most 512.
  std::int64_t reserved_mib = 512;
  // The user of nos's MPS servers, which serve no other one: mps.userID of the chart of nos's device plugin.
  std::int64_t mps_user = 1000;
  // Pack slices onto nodes that are in use, so that other nodes become empty; otherwise idle nodes are preferred.
  bool consolidate = false;
  // Free slices that no pod has used for this long are removed; 0: they stay.
  Duration remove_idle_after{0};
};

}  // namespace gso
