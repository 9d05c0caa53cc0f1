// Why a node is Blocked: the closed list.
#include "reconcilers/reasons/codes.h"

#include "reconcilers/reasons/names.h"

namespace gso {

namespace {

// `command`: the next one, if it is known for every node (CodeRow::command).
constexpr CodeRow blocked(std::string_view code, std::string_view meaning, std::string_view remedy,
                          std::string_view command = {}) {
  return {{code}, Severity::error, meaning, remedy, {}, command};
}

constexpr std::string_view kShowPods = "kubectl get pods --all-namespaces --field-selector spec.nodeName={node}";
constexpr std::string_view kDescribe = "kubectl describe node {node}";

constexpr CodeRow kBlockedNodes[] = {
    blocked(
        kBudgetExhausted, "as many nodes are out of service as the budget allows, whatever the cause",
        "the message names the nodes that use the budget: bring back those that are out of service (a change of the "
        "operator ends by itself), or raise each limit that it names (`maxUnavailable`, `maxUnavailablePerGroup`, "
        "`--cluster-max-unavailable`)",
        "gpu-sharing-operator status"),
    blocked(kWaitingForWorkloads,
            "pods use the node's GPUs, and the change would break them; under `Evict` the message names the pods "
            "without a controller",
            "wait, delete the pods, or set `workloads: Evict` (for pods without a controller also "
            "`rollout.evictBarePods: true`) or `Interrupt`",
            kShowPods),
    blocked(
        kWorkloadsUnknown,
        "it is not known which pods use the node's GPUs: its pods cannot be listed, some cannot be read, or there are "
        "more than the operator keeps; the message says which. The node counts as in use, and no other node waits for "
        "it",
        "delete the pods that the message names, or grant the permission that it names", kShowPods),
    blocked(kDeferred,
            "the operator has cordoned the node for its pods once, or a person uncordoned it meanwhile: it is changed "
            "as soon as it is idle",
            "no action needed; a retry gives its pods another turn, and cordons the node again"),
    blocked(kPdbRefuses, "a PodDisruptionBudget refuses an eviction; the message names the pod and the budget's answer",
            "scale the workload up, or change its budget", "kubectl get poddisruptionbudgets --all-namespaces"),
    blocked(kProtectedNamespace,
            "`workloads: Evict` is set, and a pod that must leave runs in `kube-system`, in a namespace of the device "
            "plugin or of KAI, or in the operator's own: the operator evicts no pod there; the message names the pod",
            "delete the pod with kubectl, or move it to another namespace", kShowPods),
    blocked(kForbidden,
            "`workloads: Evict` is set, but the operator is not allowed to evict pods; the message names the pods, the "
            "server's answer and the chart value",
            "set `eviction.enabled=true`, or set `workloads: WaitForIdle` or `Interrupt`"),
    blocked(kLabelOwnedByOther,
            "the policy wants another value of the label `nvidia.com/device-plugin.config`, but someone other than the "
            "operator set the current one",
            "whoever set the label removes it, or the policy's owner sets `takeover: true`",
            "kubectl get node {node} --label-columns {label}"),
    blocked(kMigEnabled,
            "the profile uses MPS where a GPU has MIG enabled, or with `migStrategy: mixed`: GFD or the plugin would "
            "exit, and the labels would become outdated",
            "disable MIG there, or use time-slicing"),
    blocked(kMpsByLabelUnsupported,
            "a node's label selects an MPS profile that is not the default: from device plugin v0.18.2 on the MPS "
            "daemon keeps the default. As a warning of a ClusterPolicy: its ConfigMap has such profiles",
            "remove a label that the message calls left over; else choose as it says: one MPS profile as the default, "
            "time-slicing where labels select the profile, or a release with which labels work"),
    blocked(kDriverUpgrade, "the driver manager has paused the node's operands, or a driver upgrade has failed there",
            "wait until it is finished; after a failed one repair the driver's pod, or remove the label "
            "`nvidia.com/gpu-driver-upgrade-state`",
            "kubectl get node {node} -L nvidia.com/gpu-driver-upgrade-state"),
    blocked(kMigChange, "the MIG manager has paused the node's operands", "wait until it is finished",
            "kubectl get node {node} -L nvidia.com/mig.config.state"),
    blocked(kQuarantined,
            "a remediation system has taken the node out of service, by the label or taint that the message names "
            "(NVSentinel, SageMaker HyperPod, GKE, AKS, medik8s, Karpenter, `node.kubernetes.io/out-of-service`): the "
            "operator neither changes nor repairs the node",
            "wait until that system returns the node to service; if it left the label or taint behind, remove it",
            kDescribe),
    blocked(
        kStandaloneMpsChange,
        "the operator replaces the standalone MPS daemon of the node, after a change of the chart's `standaloneMps` "
        "values",
        "no action needed: the operator goes on once the new daemon is Ready; `StandaloneMPSFailed` says if it is "
        "not",
        kDescribe),
    blocked(
        kStandaloneMpsConflict,
        "the profile shares by MPS, and the chart's standalone MPS daemon is for the node as well: two daemons must "
        "not serve one GPU",
        "take the node out of `standaloneMps.nodeSelector`, or choose a profile without MPS"),
    blocked(kRenameStrandsPods, "running pods request the resource name that the change would remove",
            "delete or change those pods first", kShowPods),
    blocked(kKaiReservations,
            "KAI shares GPUs of the node by reservations, and the profile shares them by replicas: the two cannot be "
            "combined",
            "drain the fraction pods, or keep KAI off the node ([kai.md](kai.md))",
            "kubectl get pods --all-namespaces -l runai-gpu-group --field-selector spec.nodeName={node}"),
    blocked(kOutsideWindow,
            "the policy's maintenance windows are closed; the message says when the next one opens, or that none will "
            "open",
            "wait, or change `rollout.maintenanceWindows`"),
    blocked(kHeld, "the node has `gpusharing.dev/hold=true` as an annotation or as a label",
            "no action needed: whoever set it removes it when the operator is allowed to change the node: `kubectl "
            "annotate node NODE gpusharing.dev/hold-`, or `kubectl label node NODE gpusharing.dev/hold-`"),
    blocked(kConfigInvalid,
            "a component would exit on the profile, or a policy's `configMapKey` is not in the ConfigMap",
            "correct the profile, or the policy's key: the message names key, line and reason. No pod was restarted "
            "with this profile"),
    blocked(
        kProviderUnsupported,
        "the components on the node cannot load the profile: no MPS DaemonSet selects the node, the plugin exits on "
        "its own flags or variables, a GFD with another ConfigMap does not write `nvidia.com/mps.capable`, DRA "
        "shares the GPUs, or the plugin is a managed one",
        "the message says what is missing"),
    blocked(kDevicePluginConflict,
            "the device plugins of several installations are for the node, and none of them is recorded for it; the "
            "message names their DaemonSets",
            "keep all but one off the node (`nodeSelector`, affinity), or name only the right namespaces in the chart "
            "value `operandNamespaces`",
            "kubectl get daemonsets --all-namespaces -o wide"),
    blocked(kTaintNotTolerated,
            "the node has a taint (NoSchedule or NoExecute) that a plugin, GFD or MPS DaemonSet does not tolerate, "
            "while its pod still runs there: the node is counted, but no pod on it is restarted, because a deleted pod "
            "would not start again",
            "the message names the taint and the DaemonSet: remove the taint, or add the toleration "
            "(`spec.daemonsets.tolerations` of the ClusterPolicy; `tolerations` of the device plugin's chart). A node "
            "whose pods the taint has already evicted is no longer a node of the plugin"),
    blocked(
        kDraDoubleOffer,
        "a DRA driver also offers the node's GPUs, and a DeviceClass has `extendedResourceName: nvidia.com/gpu`: "
        "during a restart of the plugin the scheduler would assign the same GPU a second time; where the plugin serves "
        "them under other names (`renameByDefault`) it does so at any time, which is an error",
        "remove `extendedResourceName` from the DeviceClass, or keep the DRA driver off nodes of the device plugin",
        "kubectl get deviceclasses --output custom-columns=NAME:.metadata.name,RESOURCE:.spec.extendedResourceName"),
    blocked(kLabelsMissing,
            "GPU Feature Discovery runs for the node, but its label `nvidia.com/gpu.product` is missing (briefly while "
            "NFD or GFD restarts): its group, budget and canary are unknown, so its change does not start",
            "no action needed if the label returns; otherwise check the pods of GPU Feature Discovery and Node Feature "
            "Discovery",
            kShowPods),
    blocked(
        kDevicesUnreadable,
        "the node's annotation `gpusharing.dev/devices` cannot be read; the message says why. A change could not be "
        "verified, so it does not start",
        "correct the annotation (`expect --devices` checks the same form), or remove it: `kubectl annotate node "
        "NODE gpusharing.dev/devices-`",
        kDescribe),
};

}  // namespace

CodeSection codes_of_blocked_nodes() {
  return {CodeSection::Kind::blocks, "Why a node is Blocked",
          "A blocked node keeps what it runs. The reason is in `status.blocked` of its policy, with up to five nodes "
          "and what to do; `explain NODE` says the same about one node, with the next command.",
          kBlockedNodes};
}

}  // namespace gso
