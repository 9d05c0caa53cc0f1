// The names of codes: why a node is Blocked, and the reasons of actions, Events, findings and conditions. Public names
// that never change; no other file of the project contains them as literals. What each means is in its row (codes.h).
#pragma once

#include <string_view>

namespace gso {

// --- Why a node is Blocked: the closed list. Each has a row in codes_of_blocked_nodes.cc.
inline constexpr std::string_view kBudgetExhausted = "BudgetExhausted";
inline constexpr std::string_view kDeferred = "Deferred";
inline constexpr std::string_view kWaitingForWorkloads = "WaitingForWorkloads";
// Some of its pods cannot be read or listed, or there are too many.
inline constexpr std::string_view kWorkloadsUnknown = "WorkloadsUnknown";
inline constexpr std::string_view kPdbRefuses = "PDBRefuses";
// A pod that must leave runs where the operator evicts none.
inline constexpr std::string_view kProtectedNamespace = "ProtectedNamespace";
inline constexpr std::string_view kForbidden =
    "Forbidden";  // Also the reason of findings and Events about any missing permission.
inline constexpr std::string_view kLabelOwnedByOther = "LabelOwnedByOther";
inline constexpr std::string_view kMigEnabled = "MIGEnabled";
inline constexpr std::string_view kMpsByLabelUnsupported = "MPSByLabelUnsupported";
inline constexpr std::string_view kDriverUpgrade = "DriverUpgrade";
inline constexpr std::string_view kMigChange = "MIGChange";
inline constexpr std::string_view kQuarantined = "Quarantined";
inline constexpr std::string_view kKaiReservations = "KAIReservations";
inline constexpr std::string_view kRenameStrandsPods = "RenameStrandsPods";
inline constexpr std::string_view kOutsideWindow = "OutsideWindow";
inline constexpr std::string_view kHeld = "Held";
inline constexpr std::string_view kConfigInvalid = "ConfigInvalid";
inline constexpr std::string_view kProviderUnsupported = "ProviderUnsupported";
inline constexpr std::string_view kTaintNotTolerated = "TaintNotTolerated";
inline constexpr std::string_view kDraDoubleOffer = "DRADoubleOffer";
inline constexpr std::string_view kLabelsMissing = "LabelsMissing";
inline constexpr std::string_view kDevicesUnreadable = "DevicesUnreadable";
inline constexpr std::string_view kDevicePluginConflict =
    "DevicePluginConflict";  // Also a finding about a node that one of its plugins governs.
inline constexpr std::string_view kStandaloneMpsConflict = "StandaloneMPSConflict";
inline constexpr std::string_view kStandaloneMpsChange = "StandaloneMPSChange";

// --- Reasons of actions, Events, findings and conditions.

// Why the changes of a policy with mode Observe wait, and the Event that names them.
inline constexpr std::string_view kObserve = "Observe";
inline constexpr std::string_view kWouldRoll = "WouldRoll";
// Events of a SharingRollout: its progress.
inline constexpr std::string_view kCanaryPassed = "CanaryPassed";
inline constexpr std::string_view kWaveStarted = "WaveStarted";
inline constexpr std::string_view kRecordUnreadable = "RecordUnreadable";
// A SharingPolicy was deleted and its stop still applies; the CRDs were removed and the record's policies govern.
inline constexpr std::string_view kPolicyGone = "PolicyGone";
inline constexpr std::string_view kCrdsGone = "CRDsGone";
// A check of objects: pods mount a ConfigMap that does not exist.
inline constexpr std::string_view kConfigMapMissing = "ConfigMapMissing";
// A ConfigMap without managedFields: it is unknown when its data changed.
inline constexpr std::string_view kChangeTimeUnknown = "ChangeTimeUnknown";
inline constexpr std::string_view kPreexistingDrift = "PreexistingDrift";
inline constexpr std::string_view kUnproven = "Unproven";
inline constexpr std::string_view kDriverPinned = "DriverPinned";
inline constexpr std::string_view kDrift = "Drift";
// Nodes wait because they are NotReady.
inline constexpr std::string_view kNodesNotReady = "NodesNotReady";
inline constexpr std::string_view kLoadedUngated = "LoadedUngated";
inline constexpr std::string_view kUnhealthyDevices = "UnhealthyDevices";
inline constexpr std::string_view kDeviceUnhealthy = "DeviceUnhealthy";
inline constexpr std::string_view kJobSpansNodes = "JobSpansNodes";
inline constexpr std::string_view kNodesLeftBehind = "NodesLeftBehind";
inline constexpr std::string_view kReplicasBelowUse = "ReplicasBelowUse";
inline constexpr std::string_view kDaemonSetPodsInterrupted = "DaemonSetPodsInterrupted";
inline constexpr std::string_view kLabelsUnreliable = "LabelsUnreliable";
inline constexpr std::string_view kUnstagedClusterPolicy = "UnstagedClusterPolicy";
inline constexpr std::string_view kClusterPolicyForbidden = "ClusterPolicyForbidden";
inline constexpr std::string_view kNodesWouldBreak = "NodesWouldBreak";
inline constexpr std::string_view kNodesWouldShrink = "NodesWouldShrink";
inline constexpr std::string_view kGpuOperatorUpdating = "GPUOperatorUpdating";
// The watch of a view does not deliver (World::stale_views).
inline constexpr std::string_view kViewStale = "ViewStale";
inline constexpr std::string_view kChangeUnreadable = "ChangeUnreadable";
inline constexpr std::string_view kDeferralUnreadable = "DeferralUnreadable";
inline constexpr std::string_view kVerificationFailed = "VerificationFailed";
// A node that no plugin installation serves any more, mid-change: its marks are removed.
inline constexpr std::string_view kAbandoned = "Abandoned";
// nos partitions the node's GPUs, so the operator leaves the node alone.
inline constexpr std::string_view kPartitionedByNos = "PartitionedByNos";
// node.partitioning: findings about nodes, and Events of pods.
inline constexpr std::string_view kPartitioningSkipped = "PartitioningSkipped";
inline constexpr std::string_view kPartitioningObserves = "PartitioningObserves";
inline constexpr std::string_view kPartitioningUnconfirmed = "PartitioningUnconfirmed";
inline constexpr std::string_view kPartitioningRolledBack = "PartitioningRolledBack";
inline constexpr std::string_view kPartitioningNeedsFork = "PartitioningNeedsFork";
inline constexpr std::string_view kSlicePlanned = "SlicePlanned";
inline constexpr std::string_view kSliceUnavailable = "SliceUnavailable";
inline constexpr std::string_view kSliceTooLarge = "SliceTooLarge";
inline constexpr std::string_view kSliceRequestRefused = "SliceRequestRefused";
inline constexpr std::string_view kSeveralSlices = "SeveralSlices";
inline constexpr std::string_view kSliceWithoutHostIPC = "SliceWithoutHostIPC";
inline constexpr std::string_view kSliceOfAnotherUser = "SliceOfAnotherUser";
inline constexpr std::string_view kCanaryDrifting = "CanaryDrifting";
inline constexpr std::string_view kMaxFailures = "MaxFailures";
inline constexpr std::string_view kLabelDropped = "LabelDropped";
// Another client keeps changing a label that the operator wrote; a condition and an Event of policies, too.
inline constexpr std::string_view kLabelContested = "LabelContested";
inline constexpr std::string_view kLabelsContestedCondition = "LabelsContested";
// Sharing labels that no component maintains any more do not fit what the node serves.
inline constexpr std::string_view kLabelsLeftBehind = "LabelsLeftBehind";
inline constexpr std::string_view kLabelModeUnknown = "LabelModeUnknown";
inline constexpr std::string_view kPolicyOverlap = "PolicyOverlap";
// A policy's selector uses a label that sharing itself changes.
inline constexpr std::string_view kSelectorOnSharingLabel = "SelectorOnSharingLabel";
// A selector that works, and might not do what its author means.
inline constexpr std::string_view kSelectorOnGpuCount = "SelectorOnGPUCount";
inline constexpr std::string_view kSharedSuffixIgnored = "SharedSuffixIgnored";
inline constexpr std::string_view kKaiMismatch = "KAIAccountingMismatch";
inline constexpr std::string_view kKaiOnSharedNode = "KAIOnReplicaSharedNode";
inline constexpr std::string_view kKaiClaimedTwice = "KAIGPUClaimedTwice";
inline constexpr std::string_view kKaiPodStuck = "KAIPodStuck";
inline constexpr std::string_view kKaiNoToleration = "KAIReservationWithoutToleration";
inline constexpr std::string_view kConfigMapReplacedByGitOps = "ConfigMapReplacedByGitOps";
// Under RollingUpdate the DaemonSet controller has stopped replacing pods.
inline constexpr std::string_view kRollingUpdateStalled = "RollingUpdateStalled";
inline constexpr std::string_view kRolledBack = "RolledBack";
inline constexpr std::string_view kUndone = "Undone";
inline constexpr std::string_view kRejectedPod = "RejectedPod";
inline constexpr std::string_view kEvicted = "Evicted";  // Event on a Pod.
inline constexpr std::string_view kForeignDevicePlugin = "ForeignDevicePlugin";
inline constexpr std::string_view kTooManyWatches = "TooManyWatches";
inline constexpr std::string_view kOperandNamespacesUnknown = "OperandNamespacesUnknown";
inline constexpr std::string_view kConfigNotManaged = "ConfigNotManaged";
inline constexpr std::string_view kDaemonSetDiffers = "DaemonSetDiffers";
inline constexpr std::string_view kMpsUncleanExit = "MPSUncleanExit";
// A standalone MPS daemon: its new pod does not become Ready; its replacement waits; where it cannot run.
inline constexpr std::string_view kStandaloneMpsFailed = "StandaloneMPSFailed";
inline constexpr std::string_view kStandaloneMpsWaits = "StandaloneMPSWaits";
inline constexpr std::string_view kStandaloneMpsRefused = "StandaloneMPSRefused";

// --- Reasons of the condition Progressing alone.
// Nodes are in progress, or can start.
inline constexpr std::string_view kRollingOut = "RollingOut";
// Of a policy: no change is needed.
inline constexpr std::string_view kNothingToDo = "Settled";

}  // namespace gso
