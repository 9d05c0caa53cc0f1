// What findings, Events and `audit` say of nodes, beside the codes of checks.
#include "reconcilers/reasons/codes.h"

#include <iterator>

namespace gso {

using enum Severity;

namespace {

constexpr CodeRow kNodes[] = {
    {{"PreexistingDrift"},
     warning,
     "when the operator was installed, the node did not show what its profile says. A change made while the "
     "chart ran with `modes.rollouts=Observe` counts as one from before",
     "check its plugin pod; `gpu-sharing-operator rollout start --adopt` rolls such nodes out",
     "finding"},
    {{"EditNotLive"},
     info,
     "the ConfigMap was edited, the node does not show the new profile, and its plugin pod is older than the "
     "edit: it serves what it read before, and no GPU is lost. This is usual in a fleet without an operator, or "
     "where one was installed after the edit",
     "restart the plugin's pods node by node, or where an operator runs, `gpu-sharing-operator rollout start "
     "--adopt`; if the message names something to correct, correct it before any restart",
     "`audit`, `explain`"},
    {{"NodesNotReady"},
     warning,
     "the node is NotReady: it is not changed, not verified by its last status and not repaired; in a change it "
     "keeps its slot, and its deadlines start again once it is Ready",
     "make the node Ready; it uses 1 slot of `maxUnavailable` until then",
     "finding"},
    {{"Drift"},
     warning,
     "the node has loaded its profile, and does not show what that must produce; no rollout is in progress "
     "there. `PreexistingDrift` if it was so from the start",
     "`explain NODE` names what differs: a label that a person edited, a plugin that lost its devices, a GFD "
     "that does not run",
     "finding"},
    {{"Unproven"},
     warning,
     "its pods are older than the last change of the profile: what they have loaded is not known",
     "roll the node out with `gpu-sharing-operator rollout start --adopt`, or edit the profile",
     "finding"},
    {{"LoadedUngated"},
     warning,
     "a node loaded content outside a rollout (reboot, plugin crash); it is verified. An Event of the node, or "
     "one of the policy if more than five nodes do so (`kubectl rollout restart` of a DaemonSet after an edit). "
     "As a finding: a node that waits for an edit shows the edited text already, because its profile label was "
     "changed and changed back, or its plugin got SIGHUP. It counts as pending and is no canary",
     "nothing, unless it fails",
     "finding; Event on the Node, or on the SharingPolicy"},
    {{"VerificationFailed"},
     error,
     "a node did not show the expected state within `verifyTimeout`; the message says what differs",
     "check the pod that the message names; the node is retried when its target changes, or with "
     "`gpu-sharing-operator rollout start`",
     "finding; Event on the Node"},
    {{"Uncordoned"},
     info,
     "a person uncordoned a node while it was drained: its change is deferred until it is idle, for "
     "`idleTimeout` at least",
     "nothing, or `gpu-sharing-operator rollout start POLICY` to cordon it again now; to keep the node out of "
     "rollouts set `gpusharing.dev/hold=true`",
     "Event on the Node"},
    {{"InChange", "LeftMidChange"},
     warning,
     "no pod gets the node's GPUs because the operator changes it; the same, and no operator runs or it runs "
     "with max-mode Observe, so that nothing continues the change",
     "nothing; get an operator to run in Enforce: it continues the change and uncordons the node",
     "`audit`"},
    {{"HeldMidChange"},
     warning,
     "a person holds a node that the operator is changing, so no pod gets its GPUs, and it keeps its slot of the "
     "budgets",
     "whoever set the hold removes it: the message has the command. Where it says so, get an operator to run as "
     "well",
     "`audit`"},
    {{"NoneAllocatable", "NodeNotReady"},
     warning,
     "a Ready node that should serve GPUs has none allocatable; a GPU node is NotReady",
     "`explain NODE`; `kubectl describe node NODE`",
     "`audit`"},
    {{"LabelsLeftBehind"},
     warning,
     "a sharing label does not fit what the node serves, no GPU Feature Discovery runs there, and the operator "
     "does not write the label: NFD's annotation lists it, or the mode is `verify`",
     "install GPU Feature Discovery, or delete its NodeFeature `nvidia-features-for-NODE` and the entry in "
     "`nfd.node.kubernetes.io/feature-labels` (`nfd-master -prune` does that), by the commands in the message: "
     "the operator then writes the label",
     "finding"},
    {{"LabelModeUnknown"},
     warning,
     "the annotation `gpusharing.dev/label-mode` of a node has an unknown value, which counts as `verify`",
     "`auto`, `enforce` or `verify`",
     "finding"},
    {{"ChangeUnreadable"},
     warning,
     "the annotation `gpusharing.dev/change` of a node cannot be read, or was written by a newer release: the "
     "operator does nothing on the node, which holds a slot",
     "install the newer release again; or make sure that no change is in progress there and remove the "
     "annotation (`kubectl annotate node NAME gpusharing.dev/change-`). Then uncordon the node yourself if it is "
     "still cordoned",
     "finding"},
    {{"DeferralUnreadable"},
     warning,
     "the annotation `gpusharing.dev/deferred` of a node cannot be read, or was written by a newer release: "
     "until when its change was deferred is not known, and the node does not start",
     "`kubectl annotate node NODE gpusharing.dev/deferred-`",
     "finding"},
    {{"OwnedUnreadable"},
     warning,
     "the annotation `gpusharing.dev/owned` of a node cannot be read, or was written by a newer release: which "
     "labels are the operator's is unknown. The operator changes neither the node nor its labels, and a policy "
     "with `deletionPolicy: Revert` that is being deleted stays",
     "install the newer release again; or correct the node's labels and remove the annotation (`kubectl annotate "
     "node NODE gpusharing.dev/owned-`): the labels then belong to a person",
     "finding"},
    {{"ReloadBlocked", "CanaryFirst"},
     warning,
     "a node must be restarted to show what it should have loaded by itself, and waits: for an obstacle that the "
     "message names; or for the canary of its group, because no node of its product has shown the revision yet",
     "remove the obstacle; or nothing",
     "finding"},
    {{"ConflictingWrites"},
     warning,
     "two reconcilers want different values for one key of a node",
     "report it, with `support-bundle`",
     "finding"},
    {{"NoPlugin"},
     warning,
     "the node has GPUs, and no device plugin DaemonSet selects it, or that of the cloud provider, which the "
     "operator does not manage",
     "check its labels and taints, and the DaemonSet's nodeSelector",
     "`status`"},
    {{"UnhealthyDevices", "DeviceUnhealthy"},
     warning,
     "fewer GPUs are served, allocatable or counted than the machine has had, and the rest is right",
     "missing devices: check the node's XID errors; they do not stop a rollout. If the GPUs were removed on "
     "purpose: delete the Node object and let the kubelet register it again, or state the GPUs in "
     "`gpusharing.dev/devices`",
     "finding"},
    {{"DaemonSetPodsInterrupted"},
     info,
     "a change that ends every GPU client deletes its first pods while pods of DaemonSets or static pods use the "
     "node's GPUs",
     "restart the named pods if they do not recover by themselves",
     "finding"},
    {{"RejectedPod"},
     info,
     "a pod that its node refused during the restart was removed",
     "no action needed",
     "finding"},
    {{"StuckInCreated", "StaleProjection", "DanglingSymlink", "SignalFailed", "ConfigManagerCrashLoop"},
     warning,
     "a pod's config-manager has a fault; the pod is replaced, except on nodes that are Blocked by "
     "`DRADoubleOffer`",
     "nothing, unless the new pod has the same fault: then check the node's containerd, or what the message "
     "names",
     "finding"},
    {{"Abandoned"},
     warning,
     "a node left the plugin's reach mid-change (its DaemonSet does not select it any more, or runs without "
     "profiles): after two minutes its cordon and the operator's labels and annotations were removed",
     "nothing, if that was intended; pods of the plugin that still run there might have loaded either profile",
     "finding; Event on the Node"},
    {{"PartitionedByNos"},
     warning,
     "the node carries `nos.nebuly.com/gpu-partitioning=mps`: nos partitions its GPUs, so the operator changes, "
     "verifies and counts nothing there. If a node still has marks of a change, they are removed",
     "nothing, if nos runs there. To give the node to the operator, remove the label and let the official device "
     "plugin serve it ([migration.md](migration.md#beside-nos))",
     "finding; Event on the Node"},
};

}  // namespace

CodeSection codes_reported_of_nodes() {
  return {
      "Nodes",
      "",
      std::vector(std::begin(kNodes), std::end(kNodes)),
      CodeSection::Kind::reported,
  };
}

}  // namespace gso
