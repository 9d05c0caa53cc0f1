// Every label, annotation and finalizer that the operator reads or writes: public names that never change. No other
// file of the project contains them as literals. Codes and reasons are in reconcilers/reasons/names.h.
#pragma once

#include <cstddef>
#include <string_view>

namespace gso {

inline constexpr std::string_view kGroup = "gpusharing.dev";
inline constexpr std::string_view kApiVersion = "gpusharing.dev/v1alpha1";
inline constexpr std::string_view kFieldManager = "gpu-sharing-operator";
inline constexpr std::string_view kDefaultPolicy = "default";

// --- The operator's labels and annotations on Nodes.
// Label, only while a node is Updating, Blocked or Failed.
inline constexpr std::string_view kStateLabel = "gpusharing.dev/state";
inline constexpr std::string_view kStateUpdating = "Updating";
inline constexpr std::string_view kStateBlocked = "Blocked";
inline constexpr std::string_view kStateFailed = "Failed";
// Revision that the node has loaded and shown by its labels and capacity, and the "<configmap>/<key>" of that revision.
inline constexpr std::string_view kRevisionAnnotation = "gpusharing.dev/revision";
inline constexpr std::string_view kProfileAnnotation = "gpusharing.dev/profile";
// Why the node is Blocked or Failed, for people.
inline constexpr std::string_view kMessageAnnotation = "gpusharing.dev/message";
// The change in progress, and the deferred change (reconcilers/node/node_change.h): JSON with a version.
inline constexpr std::string_view kChangeAnnotation = "gpusharing.dev/change";
inline constexpr std::string_view kDeferredAnnotation = "gpusharing.dev/deferred";
// The replacement of the node's standalone MPS daemon (reconcilers/node/node_change.h): JSON with a version.
inline constexpr std::string_view kMpsDaemonChangeAnnotation = "gpusharing.dev/mps-daemon-change";
// Devices of the node, if GFD's label does not show them (two models, or no GFD).
inline constexpr std::string_view kGpuCountAnnotation = "gpusharing.dev/gpu-count";
// Labels that the operator owns and restores, as JSON (reconcilers/cluster/label_owners.h).
inline constexpr std::string_view kOwnedAnnotation = "gpusharing.dev/owned";
// On a DaemonSet's pod template: the rollout that restarted it (mechanism DaemonSetRestart).
inline constexpr std::string_view kRestartedForAnnotation = "gpusharing.dev/restarted-for";
// On a SharingPolicy with deletionPolicy Revert: its nodes are reverted before it is deleted.
inline constexpr std::string_view kRevertFinalizer = "gpusharing.dev/revert";
// On a SharingPolicy: a value that differs from the one at a revision's failure allows a retry (`rollout start`).
inline constexpr std::string_view kRetryAnnotation = "gpusharing.dev/retry";
// On a SharingPolicy, beside it: uids of the SharingRollouts whose abort or undo that retry ends, with commas between
// them. The operator replaces these objects.
inline constexpr std::string_view kRetriedRolloutsAnnotation = "gpusharing.dev/retried-rollouts";
inline constexpr std::size_t kMostRetriedBytes = 4096;  // About a hundred; more of its value is not read.
// On a SharingPolicy, "true": its nodes that had drifted before the operator was installed are also rolled out
// (`rollout start --adopt`).
inline constexpr std::string_view kAdoptAnnotation = "gpusharing.dev/adopt-drift";
// On a SharingRollout of an inline profile, "true": its nodes are rolled back to the revision that was verified before
// (`rollout undo`).
inline constexpr std::string_view kUndoAnnotation = "gpusharing.dev/undo";
// On the DaemonSet of standalone MPS daemons: the controller-revision-hash of the template that a person has approved,
// under mode Approve.
inline constexpr std::string_view kApprovedAnnotation = "gpusharing.dev/approved";
// There too: the metadata.generation of the DaemonSet whose daemons a person lets end without a drain, by `helm
// upgrade` or `helm uninstall`. The chart reads it as well.
inline constexpr std::string_view kEndDaemonsAnnotation = "gpusharing.dev/end-daemons";
// Inputs by people. On a Node, as annotation or label, "true": the operator skips the node (is_held()).
inline constexpr std::string_view kHoldAnnotation = "gpusharing.dev/hold";
// On a ConfigMap, "true": the operator starts no node that uses it.
inline constexpr std::string_view kPausedAnnotation = "gpusharing.dev/paused";
// On a Node: its GPUs, as JSON.
inline constexpr std::string_view kDevicesAnnotation = "gpusharing.dev/devices";
// On a Node, "auto", "enforce" or "verify": whether the operator writes its sharing labels (label_mode_of()).
inline constexpr std::string_view kLabelModeAnnotation = "gpusharing.dev/label-mode";
// On a Pod, "true": the operator does not evict it.
inline constexpr std::string_view kDoNotDisruptAnnotation = "gpusharing.dev/do-not-disrupt";
// On a Node: an MPS daemon without a pod runs there.
inline constexpr std::string_view kMpsHostAnnotation = "gpusharing.dev/mps-host";
// On a Pod, or as a label on its Namespace, "true": it connects to an MPS daemon that is not the device plugin's. The
// chart's MutatingAdmissionPolicy adds what it needs.
inline constexpr std::string_view kMpsClient = "gpusharing.dev/mps-client";
// On such a Pod: its daemon's pipe directory, if it is not the chart's. As a label on a Node: its standalone daemon's.
inline constexpr std::string_view kMpsPipeDirectory = "gpusharing.dev/mps-pipe-directory";
// On the state ConfigMap, a time as in 2026-01-02T03:04:05Z: the stops of policies that had been deleted by then are
// dropped.
inline constexpr std::string_view kForgetPoliciesAnnotation = "gpusharing.dev/forget-policies";
// On the ConfigMaps that hold parts of the record beside the state ConfigMap: "shard".
inline constexpr std::string_view kRecordLabel = "gpusharing.dev/record";
inline constexpr std::string_view kRecordShardValue = "shard";
// "true": the operator wrote the node's label nvidia.mps/enabled.
inline constexpr std::string_view kMpsMarkAnnotation = "gpusharing.dev/mps-enabled";
// What the operator must remember of a node that it partitions (reconcilers/partitioning/node_moves.h): JSON with a
// version. Written together with the label that selects the profile, and never alone.
inline constexpr std::string_view kPartitioningAnnotation = "gpusharing.dev/partitioning";
// Every annotation that the operator writes on a Node, which `cleanup` therefore removes. Its labels there are
// kStateLabel and kMpsPipeDirectory.
inline constexpr std::string_view kNodeAnnotations[] = {
    kChangeAnnotation,   kRevisionAnnotation, kProfileAnnotation, kMessageAnnotation,      kDeferredAnnotation,
    kGpuCountAnnotation, kOwnedAnnotation,    kMpsMarkAnnotation, kPartitioningAnnotation, kMpsDaemonChangeAnnotation};

// --- The ecosystem's.
inline constexpr std::string_view kConfigLabel = "nvidia.com/device-plugin.config";
inline constexpr std::string_view kGpuResource = "nvidia.com/gpu";
inline constexpr std::string_view kGpuCount = "nvidia.com/gpu.count";
inline constexpr std::string_view kGpuReplicas = "nvidia.com/gpu.replicas";
inline constexpr std::string_view kGpuProduct = "nvidia.com/gpu.product";
inline constexpr std::string_view kComputeMajor = "nvidia.com/gpu.compute.major";
inline constexpr std::string_view kComputeMinor = "nvidia.com/gpu.compute.minor";
inline constexpr std::string_view kSharingStrategy = "nvidia.com/gpu.sharing-strategy";
inline constexpr std::string_view kMpsCapable = "nvidia.com/mps.capable";
inline constexpr std::string_view kMpsEnabled = "nvidia.mps/enabled";  // KAI's mark: pods find an MPS daemon there.
inline constexpr std::string_view kGpuDraDriver = "gpu.nvidia.com";    // The driver name in ResourceSlices.
// On a Node, "mps": nos partitions its GPUs. The second is the former name of that label.
inline constexpr std::string_view kNosPartitioning = "nos.nebuly.com/gpu-partitioning";
inline constexpr std::string_view kNosPartitioningBefore = "nos.nebuly.ai/gpu-partitioning";
// Annotations of a Node: the slices that nos's gpu-agent reports, "<prefix><index>-<N>gb-used|free".
inline constexpr std::string_view kNosStatusPrefix = "nos.nebuly.com/status-gpu-";
inline constexpr std::string_view kGpuMemory = "nvidia.com/gpu.memory";  // MiB of one GPU.
inline constexpr std::string_view kMigConfig = "nvidia.com/mig.config";
inline constexpr std::string_view kMigConfigState = "nvidia.com/mig.config.state";
inline constexpr std::string_view kMigStrategy = "nvidia.com/mig.strategy";
inline constexpr std::string_view kDriverUpgradeState = "nvidia.com/gpu-driver-upgrade-state";
inline constexpr std::string_view kDeployPrefix = "nvidia.com/gpu.deploy.";
// Of GPU clients that are none of the GPU Operator's operands; release 26.7 and later set it.
inline constexpr std::string_view kDeployClients = "nvidia.com/gpu.deploy.client";
// "true" on a Node: the autoscaler does not remove it.
inline constexpr std::string_view kScaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled";
inline constexpr std::string_view kKarpenterDoNotDisrupt = "karpenter.sh/do-not-disrupt";  // Also on a Pod.
inline constexpr std::string_view kSafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict";
// Labels of the hardware, by Node Feature Discovery.
inline constexpr std::string_view kFeaturePrefix = "feature.node.kubernetes.io/";
inline constexpr std::string_view kFeatureLabels = "nfd.node.kubernetes.io/feature-labels";
inline constexpr std::string_view kRevisionHashLabel = "controller-revision-hash";

// --- Keys of the state ConfigMap.
inline constexpr std::string_view kRecordKey = "baseline.json";
inline constexpr std::string_view kStatusKey = "status.json";
inline constexpr std::string_view kOptionsKey = "options.json";
// The key of each of the record's shards.
inline constexpr std::string_view kShardKey = "nodes.json";

}  // namespace gso
