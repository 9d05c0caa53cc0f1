// What findings, Events, conditions and `audit` name beside the codes of checks.
#include "reconcilers/reasons/codes.h"

namespace gso {
namespace {

constexpr CodeRow kNodes[] = {
    warning_row({"PreexistingDrift"},
                "when the operator was installed, the node did not show what its profile says. A change made while the "
                "chart ran with `modes.rollouts=Observe` counts as one from before",
                "check its plugin pod; `gpu-sharing-operator rollout start --adopt` rolls such nodes out"),
    info_row({"EditNotLive"},
             "the ConfigMap was edited, the node does not show the new profile, and its plugin pod is older than the "
             "edit: it serves what it read before, and no GPU is lost. This is usual in a fleet without an operator, "
             "or where one was installed after the edit",
             "restart the plugin's pods node by node, or where an operator runs, `gpu-sharing-operator rollout start "
             "--adopt`; if the message names something to correct, correct it before any restart",
             "`audit`, `explain`"),
    warning_row({"NodesNotReady"},
                "the node is NotReady: it is not changed, not verified by its last status and not repaired; in a "
                "change it keeps its slot, and its deadlines start again once it is Ready",
                "make the node Ready; it uses 1 slot of `maxUnavailable` until then"),
    warning_row({"Drift"},
                "the node has loaded its profile, and does not show what that must produce; no rollout is in progress "
                "there. `PreexistingDrift` if it was so from the start",
                "`explain NODE` names what differs: a label that a person edited, a plugin that lost its devices, a "
                "GFD that does not run"),
    warning_row({"Unproven"},
                "its pods are older than the last change of the profile: what they have loaded is not known",
                "roll the node out with `gpu-sharing-operator rollout start --adopt`, or edit the profile"),
    warning_row(
        {"LoadedUngated"},
        "a node loaded content outside a rollout (reboot, plugin crash); it is verified. An Event of the node, "
        "or one of the policy if more than five nodes do so (`kubectl rollout restart` of a DaemonSet after an "
        "edit). As a finding: a node that waits for an edit shows the edited text already, because its profile "
        "label was changed and changed back, or its plugin got SIGHUP. It counts as pending and is not a canary",
        "nothing, unless it fails", "finding; Event on the Node, or on the SharingPolicy"),
    error_row({"VerificationFailed"},
              "a node did not show the expected state within `verifyTimeout`; the message says what differs",
              "check the pod that the message names; the node is retried when its target changes, or with "
              "`gpu-sharing-operator rollout start`",
              "finding; Event on the Node"),
    info_row({"Uncordoned"},
             "a person uncordoned a node while it was drained: its change is deferred until it is idle, for "
             "`idleTimeout` at least",
             "nothing, or `gpu-sharing-operator rollout start POLICY` to cordon it again now; to keep the node out of "
             "rollouts set `gpusharing.dev/hold=true`",
             "Event on the Node"),
    warning_row({"InChange", "LeftMidChange"},
                "no pod gets the node's GPUs because the operator changes it; the same, and no operator runs or it "
                "runs with max-mode Observe, so that nothing continues the change",
                "nothing; get an operator to run in Enforce: it continues the change and uncordons the node",
                "`audit`"),
    warning_row({"HeldMidChange"},
                "a person holds a node that the operator is changing, so no pod gets its GPUs, and it keeps its slot "
                "of the budgets",
                "whoever set the hold removes it: the message has the command. Where it says so, get an operator to "
                "run as well",
                "`audit`"),
    warning_row({"NoneAllocatable", "NodeNotReady"},
                "a Ready node that should serve GPUs has none allocatable; a GPU node is NotReady",
                "`explain NODE`; `kubectl describe node NODE`", "`audit`"),
    error_row({"PodsCannotRun"}, "GPU pods that cannot run, by the codes of `explain POD`",
              "`explain NAMESPACE/POD` says what each needs", "`audit`"),
    info_row({"PodsWait"}, "GPU pods that wait until other pods, a change or a queue let them run", "no action needed",
             "`audit`"),
    warning_row({"LabelsLeftBehind"},
                "a sharing label does not fit what the node serves, no GPU Feature Discovery runs there, and the "
                "operator does not write the label: NFD's annotation lists it, or the mode is `verify`",
                "install GPU Feature Discovery, or delete its NodeFeature `nvidia-features-for-NODE` and the entry in "
                "`nfd.node.kubernetes.io/feature-labels` (`nfd-master -prune` does that), by the commands in the "
                "message: the operator then writes the label"),
    warning_row({"LabelModeUnknown"},
                "the annotation `gpusharing.dev/label-mode` of a node has an unknown value, which counts as `verify`",
                "`auto`, `enforce` or `verify`"),
    warning_row({"ChangeUnreadable"},
                "the annotation `gpusharing.dev/change` of a node cannot be read, or was written by a newer release: "
                "the operator does nothing on the node, which holds a slot",
                "install the newer release again; or make sure that no change is in progress there and remove the "
                "annotation (`kubectl annotate node NAME gpusharing.dev/change-`). Then uncordon the node yourself if "
                "it is still cordoned"),
    warning_row({"DeferralUnreadable"},
                "the annotation `gpusharing.dev/deferred` of a node cannot be read, or was written by a newer release: "
                "until when its change was deferred is not known, and the node does not start",
                "`kubectl annotate node NODE gpusharing.dev/deferred-`"),
    warning_row({"OwnedUnreadable"},
                "the annotation `gpusharing.dev/owned` of a node cannot be read, or was written by a newer release: "
                "which labels are the operator's is unknown. The operator changes neither the node nor its labels, and "
                "a policy with `deletionPolicy: Revert` that is being deleted stays",
                "install the newer release again; or correct the node's labels and remove the annotation (`kubectl "
                "annotate node NODE gpusharing.dev/owned-`): the labels then belong to a person"),
    warning_row(
        {"ReloadBlocked", "CanaryFirst"},
        "a node must be restarted to show what it should have loaded by itself, and waits: for an obstacle that the "
        "message names; or for the canary of its group, because no node of its product has shown the revision yet",
        "remove the obstacle; or nothing"),
    warning_row({"ConflictingWrites"}, "two reconcilers want different values for one key of a node",
                "report it, with `support-bundle`"),
    warning_row({"NoPlugin"},
                "the node has GPUs, and no device plugin DaemonSet selects it, or that of the cloud provider, which "
                "the operator does not manage",
                "check its labels and taints, and the DaemonSet's nodeSelector", "`status`"),
    warning_row({"UnhealthyDevices", "DeviceUnhealthy"},
                "fewer GPUs are served, allocatable or counted than the machine has had, and the rest is right",
                "missing devices: check the node's XID errors; they do not stop a rollout. If the GPUs were removed on "
                "purpose: delete the Node object and let the kubelet register it again, or state the GPUs in "
                "`gpusharing.dev/devices`"),
    info_row({"DaemonSetPodsInterrupted"},
             "a change that ends every GPU client deletes its first pods while pods of DaemonSets or static pods use "
             "the node's GPUs",
             "restart the named pods if they do not recover by themselves"),
    info_row({"RejectedPod"}, "a pod that its node refused during the restart was removed", "no action needed"),
    warning_row(
        {"StuckInCreated", "StaleProjection", "DanglingSymlink", "SignalFailed", "ConfigManagerCrashLoop"},
        "a pod's config-manager has a fault; the pod is replaced, except on nodes that are Blocked by `DRADoubleOffer`",
        "nothing, unless the new pod has the same fault: then check the node's containerd, or what the message names"),
    warning_row(
        {"Abandoned"},
        "a node left the plugin's reach mid-change (its DaemonSet no longer selects it, or runs without "
        "profiles): after two minutes its cordon and the operator's labels and annotations were removed",
        "nothing, if that was intended; pods of the plugin that still run there might have loaded either profile",
        "finding; Event on the Node"),
    warning_row({"PartitionedByNos"},
                "the node carries `nos.nebuly.com/gpu-partitioning=mps`: nos partitions its GPUs, so the operator "
                "changes, verifies and counts nothing there. If a node still has marks of a change, they are removed",
                "nothing, if nos runs there. To give the node to the operator, remove the label and let the official "
                "device plugin serve it ([migration.md](migration.md#beside-nos))",
                "finding; Event on the Node"),
};

constexpr CodeRow kPolicies[] = {
    info_row({"WouldRoll", "Observe"},
             "a change waits because the policy, or `modes.rollouts`, is Observe: the message has the key, the "
             "revision and the number of nodes",
             "`gpu-sharing-operator diff` shows the change of each node (if the whole chart runs with "
             "`modes.rollouts=Observe`, nothing is recorded to compare with: it lists the nodes that do not show their "
             "profile); set `mode: Approve` or `Enforce` to roll it out",
             "finding; Event on the SharingPolicy"),
    info_row({"Evicted"},
             "the operator has evicted the pod under `workloads: Evict`; the message has the node and the rollout",
             "nothing: its controller creates it again. `gpusharing.dev/do-not-disrupt: \"true\"` on the pod keeps it "
             "from being evicted",
             "Event on the Pod"),
    warning_row({"PolicyPaused", "ConfigMapPaused"},
                "a policy (`spec.rollout.paused`) or the plugin's ConfigMap (annotation `gpusharing.dev/paused`) is "
                "paused while no node waits: the next edit is not rolled out",
                "the command in the message resumes it", "`status`, `audit`"),
    warning_row(
        {"PolicyOverlap"},
        "another SharingPolicy governs nodes that this one selects: higher priority, then the older, then the name",
        "narrow one `nodeSelector`, or set `priority`",
        "condition `Overlapped`; `status`, `audit` where priorities are equal"),
    warning_row({"LabelContested"},
                "another client has changed or removed a sharing label of a node, or the one with the directory of its "
                "MPS daemon, three times within a day, each time after the operator had set it. The operator leaves "
                "the label as it is, and tries again after a day",
                "`kubectl get node NODE --output yaml --show-managed-fields` names the client: stop it, or leave the "
                "label to it with the annotation `gpusharing.dev/label-mode=verify` "
                "([labels.md](labels.md#who-writes-the-sharing-labels))",
                "condition `LabelsContested`; Event on the SharingPolicy"),
    warning_row({"PolicyGone"},
                "a SharingPolicy with a stop (mode Observe or Approve, paused, windows, a paused or aborted rollout) "
                "was deleted. The stop still applies to its nodes",
                "create the policy again; or create another policy for these nodes with at least the same priority; or "
                "run the command in the message ([rollout-rules.md](rollout-rules.md#stops-that-outlive-their-object))",
                "finding; Event on the SharingPolicy or the ClusterPolicy"),
    warning_row({"CRDsGone"},
                "the SharingPolicy/SharingRollout CRDs were installed and are gone. The last specs of the "
                "policies govern, with their modes, pauses, windows and budgets",
                "install the CRDs and apply the policies again; or run the command in the message: then the operator's "
                "flags govern",
                "finding; Event on the SharingPolicy or the ClusterPolicy"),
    warning_row(
        {"ReplicasBelowUse"}, "pods request more than the new profile will serve on the named nodes",
        "keep more replicas, or let these pods end; under `Interrupt` the operator does not wait for them. Where the "
        "number of GPUs is not known, one counts: GFD, or the annotation `gpusharing.dev/devices`, makes it known"),
    warning_row({"JobSpansNodes"},
                "members of one job run on several nodes that are to be changed, and gang peers are evicted together "
                "or not at all",
                "wait; raise `maxUnavailable` if the budgets can never cover them all "
                "([rollout-rules.md](rollout-rules.md#jobs-on-several-nodes))"),
    warning_row(
        {"NodesLeftBehind"},
        "under `mechanism: DaemonSetRestart`, the DaemonSets were restarted, and the new pods of the named nodes are "
        "not newer than the edit (made in the same second, or by an API server whose clock is behind)",
        "nothing: after `verifyTimeout` the operator restarts these nodes one by one"),
};

constexpr CodeRow kRollouts[] = {
    info_row({"CanaryPassed", "WaveStarted"},
             "Events of a SharingRollout: its canary has shown the revision for the soak, and a wave (as many nodes as "
             "`maxUnavailable`) starts; of more than twenty waves about twenty are reported",
             "no action needed", "Event on the SharingRollout"),
    info_row(
        {"GPUOperatorUpdating"},
        "the ClusterPolicy announces a configuration that its DaemonSets do not have yet; no rollout starts meanwhile",
        "wait; if it lasts for more than two minutes the message says more (`DaemonSetDiffers`)", "condition"),
    warning_row({"RollingUpdateStalled"},
                "a new template of the DaemonSets (updateStrategy RollingUpdate) has replaced no pod for "
                "`verifyTimeout`; the nodes run the old one",
                "`kubectl -n NAMESPACE rollout status daemonset NAME`: a pod that does not become Ready, or a node "
                "that is NotReady, holds `maxUnavailable` of the DaemonSet",
                "condition; finding"),
    info_row({"Settling"},
             "the plugin's ConfigMap or its DaemonSets change again and again, less than `settle-period` apart, so "
             "nothing starts",
             "find out which client writes there (`kubectl get configmap NAME -o yaml --show-managed-fields`), or set "
             "a shorter `settle-period`",
             "condition"),
    info_row({"KeyNotProjected"},
             "a label must select a key that is new in the ConfigMap, or was edited (or the operator has just "
             "started): its text must reach the kubelets first (100 s)",
             "wait: the message names the key. Edits of other keys do not count", "condition"),
    info_row({"CanaryDrifting"}, "a verified canary stopped showing its profile during its soak: no other node starts",
             "check its pods; it is restarted if that lasts for `verifyTimeout`, and fails (`MaxFailures`) if that "
             "does not help; or edit the profile back",
             "condition"),
    error_row({"MaxFailures"}, "a rollout stopped: one failure in the canary, `maxFailures` after it",
              "check the failed nodes; edit the profile (a new revision starts at its canary), `gpu-sharing-operator "
              "rollout undo`, or `rollout start` to retry the same revision",
              "condition, phase; Event on the SharingRollout"),
    warning_row({"RolledBack", "Undone"},
                "an inline profile failed, or a person undid it: its nodes return to the last verified profile",
                "change the policy's profile, or `rollout start`", "phase; Event on the SharingRollout"),
};

constexpr CodeRow kInstallation[] = {
    warning_row({"NodesWouldBreak"}, "the ClusterPolicy's new default would leave the named nodes without GPUs",
                "correct it before the GPU Operator changes them", "finding; Event on the object"),
    warning_row({"NodesWouldShrink"},
                "the ClusterPolicy announces a default, or none, with which nodes will serve less than now",
                "set the former default again before the GPU Operator has changed the nodes, if that is not wanted; "
                "`gpu-sharing-operator diff --clusterpolicy-patch` shows such a patch before it is made",
                "finding; Event on the object"),
    warning_row({"UnstagedClusterPolicy"}, "the GPU Operator rolls out its DaemonSets itself, without waves",
                "`daemonsets.updateStrategy: OnDelete` makes such a change, also of an image, a staged rollout: pods "
                "of an older template are then replaced in waves, with a canary (not those that were already older "
                "when the operator was installed)",
                "finding; Event on the object"),
    warning_row(
        {"ClusterPolicyForbidden"},
        "ClusterPolicies cannot be read (403). Rollouts continue with the DaemonSets' templates; unknown are a change "
        "that the GPU Operator has not started yet, and the nodes that it would break. Meanwhile the operator does not "
        "use mechanism `DaemonSetRestart` on its DaemonSets, and does not remove unused keys of inline profiles there",
        "grant get, list and watch on `clusterpolicies.nvidia.com` (the chart's ClusterRole has it)",
        "finding; Event on the object"),
    warning_row({"ViewStale"},
                "the watch that the message names has delivered nothing since then, for more than 150 seconds: no node "
                "is started and nothing is deleted until it does; nodes in a change continue by lists",
                "see [GpuSharingViewStale](runbooks.md#gpusharingviewstale)"),
    warning_row(
        {"DaemonSetDiffers"},
        "DaemonSets of the GPU Operator have had another ConfigMap or `DEFAULT_CONFIG` than their ClusterPolicy says "
        "for more than two minutes: a person has changed them by hand, or the GPU Operator does not run. It compares "
        "hashes of what it wants, so it overwrites such a change only when it has something new to write. No rollout "
        "starts meanwhile",
        "set `spec.devicePlugin.config` of the ClusterPolicy to what is wanted, or check the GPU Operator's log"),
    warning_row(
        {"ForeignDevicePlugin"},
        "a DaemonSet outside the operand namespaces has a container with the name of a part of the device plugin: "
        "anybody who can create DaemonSets in one namespace can make one, so it governs nothing",
        "add its namespace to the chart value `operandNamespaces` if it is yours; else ask who made it, and delete it"),
    warning_row({"TooManyWatches"},
                "the DaemonSets of the operand namespaces would need more than 256 watches: nothing is planned for the "
                "nodes of the namespaces that the message names",
                "delete device plugins that are not used, or take their namespaces out of `operandNamespaces`"),
    warning_row({"OperandNamespacesUnknown"},
                "at the first start nothing said where the device plugin runs (no `operandNamespaces`, no "
                "ClusterPolicy, no record): every namespace where a plugin was found counts from then on, and the "
                "record keeps this choice until the setting names some",
                "name the right namespaces in `operandNamespaces`"),
    warning_row(
        {"ConfigNotManaged"},
        "a plugin, GFD or MPS DaemonSet reads a file of a ConfigMap by itself (`--config-file`, `CONFIG_FILE`), "
        "without a config-manager sidecar: edits are not rolled out, and take effect when its pods restart",
        "name the ConfigMap in `devicePlugin.config` of the ClusterPolicy, or in `config.name` of the device plugin's "
        "chart; or restart the pods yourself after an edit"),
    warning_row(
        {"ConfigMapReplacedByGitOps"},
        "a GitOps tool removed a key that a policy needs from the plugin's ConfigMap; the operator has restored it",
        "ignore that key in Argo CD or Flux ([the chart](../charts/gpu-sharing-operator/README.md) ships how), or "
        "choose keys that are in Git",
        "finding; Event on the object"),
    warning_row({"Forbidden"},
                "a permission is missing; the message has the verb, the namespace, and the chart value that grants it",
                "set that value", "finding; Event on the object or its Namespace"),
    warning_row({"Invalid"}, "the API server refuses a write as malformed; the message quotes it",
                "report it, with `support-bundle`", "finding; Event on the object or its Namespace"),
    warning_row(
        {"ForgetPoliciesUnreadable"},
        "the annotation `gpusharing.dev/forget-policies` of the state ConfigMap is not a time: no stop is forgotten",
        "the command in the message"),
    warning_row({"RecordUnreadable"},
                "the state ConfigMap of the operator, or a part of the record beside it, is missing or not readable. "
                "No rollout starts",
                "[GpuSharingRecordUnreadable](runbooks.md#gpusharingrecordunreadable)", "finding; Event on the object"),
    warning_row({"ChangeTimeUnknown"},
                "a ConfigMap with profiles has no managedFields, so no pod counts as having loaded its present text",
                "print the manifests with `kubectl get … -o yaml --show-managed-fields`, or use `--from-cluster`",
                "`plan`, `audit`"),
    warning_row({"OtherRestarter"},
                "another tool restarts the plugin's pods when its ConfigMap changes (Reloader, Wave, `rollme`, "
                "checksum annotations): without canary, budgets or a check of workloads",
                "exclude the plugin's DaemonSets from it", "`audit`"),
    warning_row({"SecondDevicePlugin", "SecondMPSDaemon"},
                "HAMi, or the MPS daemon of kai-gpu-fractioning, gives GPUs of the node to pods beside the device "
                "plugin: both hand out the same GPU. As a warning: only HAMi's annotation is left on the node",
                "give the node to one of them, by their node selectors; remove an annotation that was left behind",
                "`audit`"),
    warning_row({"DRABesidePlugin"}, "a DRA driver offers the GPUs of a node that the device plugin serves as well",
                "offer them by one of the two", "`audit`"),
    info_row({"LeaderElection"}, "this replica now holds the Lease `gpu-sharing-operator`", "no action needed",
             "Event on the Lease"),
};

constexpr CodeRow kMpsDaemons[] = {
    warning_row({"StandaloneMPSRefused"},
                "the pod of the chart's standalone MPS daemon says why it cannot run on the node, or the container "
                "crashes, or a second MPS control daemon was started on the node",
                "do what the message says; it has all that is missing. If it only says that the pod is not Ready, "
                "`kubectl describe pod` has what its readiness probe says"),
    warning_row({kDriverPinned},
                "the driver or the MIG mode of a node is being changed, and the pod of its standalone MPS daemon keeps "
                "the kernel module in use, because its DaemonSet does not follow driver upgrades: the driver's pod "
                "crashes until the daemon ends",
                "take the node out of the DaemonSet until the upgrade is done, by its label, and set the chart's "
                "`standaloneMps.followDriverUpgrades` to `Auto`"),
    warning_row({"StandaloneMPSLost"},
                "a node left the DaemonSet of its standalone MPS daemon, or the DaemonSet went, while GPU clients ran "
                "there: they lose their GPU. Reported until two minutes after the daemon's end",
                "if it was a mistake, set the label or install the release again; then restart the pods that the "
                "message names. [standalone-mps.md](standalone-mps.md#without-a-drain) says what ends daemons so",
                "finding; Event on the Node"),
    warning_row({"StandaloneMPSWaits"},
                "the standalone MPS daemon of a node, or of several, is not replaced yet: GPU clients run there (under "
                "`workloads: Evict` the message names those that the operator does not evict, and why), the policy "
                "closes a gate, or the node is NotReady in its change and keeps its slot",
                "wait, delete the pods, open the gate that the message names, or bring the node back"),
    warning_row({"StandaloneMPSFailed"},
                "the new standalone MPS daemon of a node is not Ready within `verifyTimeout`. The node keeps its "
                "cordon, and no further node starts",
                "correct the chart's `standaloneMps` values with `helm upgrade`; or what the message names on the "
                "node, and then: `gpu-sharing-operator rollout start POLICY`"),
    warning_row({"MPSDirectoryUnlabelled"},
                "the standalone MPS daemon of a node is in a directory that no label's value can express: the node has "
                "no label `gpusharing.dev/mps-pipe-directory`",
                "choose another `standaloneMps.pipeDirectory` if pods must select nodes by it"),
    warning_row({"MPSDirectoryOfOthers"},
                "a node has the label `gpusharing.dev/mps-pipe-directory`, no standalone MPS daemon runs there, and "
                "the operator did not set the label: pods that select nodes by it might get the whole GPU",
                "remove the label (`kubectl label node NODE gpusharing.dev/mps-pipe-directory-`), and stop the client "
                "that sets it"),
    warning_row({"MPSUncleanExit"},
                "the MPS control daemon was killed (exit code 137, usually for memory), so it did not reset its GPUs: "
                "they might stay in compute mode EXCLUSIVE_PROCESS, where one process at a time gets a context",
                "`nvidia-smi -q -d COMPUTE` on the node; `nvidia-smi -c DEFAULT`, or reboot it. Raise the daemon's "
                "memory limit",
                "finding; Event on the Node"),
};

constexpr CodeRow kSlices[] = {
    warning_row({"PartitioningSkipped"},
                "`node.partitioning` leaves this node, its key or its ConfigMap alone, and the message says why: a GPU "
                "before Volta, MIG, a report of slices that cannot be read, a node that is not Ready, pods that use "
                "more slices than the node reports, a ConfigMap near its limit of 1 MiB",
                "what the message says; `explain NODE` has the command that shows the cause. Nothing is taken from "
                "pods meanwhile"),
    warning_row({"PartitioningNeedsFork"},
                "the official device plugin serves a node with nos's label, and slices of different sizes need "
                "Nebuly's fork of it",
                "let the fork serve the node, or remove the label and share its GPUs by profiles "
                "([migration.md](migration.md#beside-nos))"),
    warning_row(
        {"PartitioningObserves"},
        "nos's gpu-partitioner renews its Lease, so the operator only observes; or partitioning is only "
        "observed, and the finding names the slices that a node would get",
        "nothing while nos is to stay. To hand over, scale gpu-partitioner to 0 "
        "([migration.md](migration.md#from-nos-to-this-operator)). To partition: `modes.partitioning: Enforce`"),
    warning_row({"PartitioningOff"}, "nodes are labelled for partitioning, and it is switched off",
                "nothing if nos runs there; else `modes.partitioning` ([partitioning.md](partitioning.md))"),
    info_row(
        {"PartitioningReleased"},
        "the node lost the label of nos: its profile label is what it was before, and the operator's annotation is "
        "gone. A node whose owner removed only the former name of the label is released once no pod uses slices there",
        "nothing, if that was intended. Before another plugin serves GPUs that nos's has left in compute mode "
        "EXCLUSIVE_PROCESS: `nvidia-smi -c DEFAULT` on the node",
        "Event on the Node"),
    warning_row({"PartitioningReportStale"},
                "nos's gpu-agent is not ready on the node, or no pod of it runs there: the node's slice report might "
                "be outdated, so its GPUs are not cut, and a label that moved is not confirmed",
                "repair the agent: the message names its pod (`kubectl logs`, `kubectl describe`); without a pod, look "
                "at the agent's DaemonSet and the node's taints"),
    warning_row(
        {"PartitioningUnconfirmed"},
        "the node's label names a key, and the node does not report the slices of that key yet; or it cannot, because "
        "the key has slices of GPUs that the node no longer has; or pods use slices that the node does not report",
        "wait: after 15 minutes the label is set back to the previous key. If it happens again, read the logs of the "
        "plugin's pod on that node. If GPUs are missing: repair the machine, or leave it: the next pod that waits gets "
        "a key without them"),
    warning_row({"PartitioningRolledBack"},
                "a node did not show its new slices in time, or pods use slices that the new key lacks: its label "
                "names the previous key again. The node is tried again after ten minutes, then after twice as long, up "
                "to four hours. Or another client had moved the label while pods used slices of the operator's key",
                "read the logs of the plugin's pod on that node; keep other clients from the label "
                "`nvidia.com/device-plugin.config` there",
                "finding; Event on the Node"),
    info_row({"SlicePlanned"}, "the pod waits for a slice, and the node that will have it is named", "no action needed",
             "Event on the Pod"),
    warning_row({"SliceUnavailable"},
                "no node can give the pod its slice without taking one that a pod uses; the nearest alternative and "
                "its holders are named",
                "end one of the holders, ask for a smaller slice, or add a node", "Event on the Pod"),
    warning_row({"SliceTooLarge"}, "no GPU of the cluster has that much memory for one slice",
                "ask for a smaller slice", "Event on the Pod"),
    warning_row({"SliceRequestRefused"},
                "no slice is cut for the pod, because a container could not use it: it asks for more than one, or "
                "does not reach the MPS daemon of nos (`hostIPC: true`, and the daemon's user)",
                "what the message says. If the daemon's user is not 1000: the chart's `podMutation.nosUser`",
                "Event on the Pod"),
};

}  // namespace

std::vector<CodeSection> codes_reported() {
  constexpr auto kReported = CodeSection::Kind::reported;
  return {
      {kReported, "Nodes", "", kNodes},
      {kReported, "Policies and what they do", "", kPolicies},
      {kReported, "Rollouts",
       "Each is a reason of the condition `Progressing`, or an Event of the SharingRollout. Its further Events have "
       "the name of its new phase (`Paused`, `AwaitingApproval`, `Completed`, `Superseded`): `gpu-sharing-operator "
       "rollout status` prints the way out of each stop.",
       kRollouts},
      {kReported, "The installation", "", kInstallation},
      {kReported, "MPS daemons", "", kMpsDaemons},
      {kReported, "Slices for pending pods",
       "`SlicePlanned` and the like are Events of pods that wait; the rest is about nodes "
       "([partitioning.md](partitioning.md)).",
       kSlices}};
}

}  // namespace gso
