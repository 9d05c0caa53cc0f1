// What findings, Events, conditions and `audit` name beside the codes of checks, but about nodes.
#include "reconcilers/reasons/codes.h"

namespace gso {
namespace {

using enum Severity;

constexpr CodeRow kPolicies[] = {
    {{"WouldRoll", "Observe"},
     info,
     "a change waits because the policy, or `modes.rollouts`, is Observe: the message has the key, the revision "
     "and the number of nodes",
     "`gpu-sharing-operator diff` shows the change of each node (if the whole chart runs with "
     "`modes.rollouts=Observe`, nothing is recorded to compare with: it lists the nodes that do not show their "
     "profile); set `mode: Approve` or `Enforce` to roll it out",
     "finding; Event on the SharingPolicy"},
    {{"Evicted"},
     info,
     "the operator has evicted the pod under `workloads: Evict`; the message has the node and the rollout",
     "nothing: its controller creates it again. `gpusharing.dev/do-not-disrupt: \"true\"` on the pod keeps it "
     "from being evicted",
     "Event on the Pod"},
    {{"PolicyPaused", "ConfigMapPaused"},
     warning,
     "a policy (`spec.rollout.paused`) or the plugin's ConfigMap (annotation `gpusharing.dev/paused`) is paused "
     "while no node waits: the next edit is not rolled out",
     "the command in the message resumes it",
     "`status`, `audit`"},
    {{"PolicyOverlap"},
     warning,
     "another SharingPolicy governs nodes that this one selects: higher priority, then the older, then the name",
     "narrow one `nodeSelector`, or set `priority`",
     "condition `Overlapped`; `status`, `audit` where priorities are equal"},
    {{"LabelContested"},
     warning,
     "another client has changed or removed a sharing label of a node, or the one with the directory of its MPS "
     "daemon, three times within a day, each time after the operator had set it. The operator leaves the label "
     "as it is, and tries again after a day",
     "`kubectl get node NODE --output yaml --show-managed-fields` names the client: stop it, or leave the label "
     "to it with the annotation `gpusharing.dev/label-mode=verify` "
     "([labels.md](labels.md#who-writes-the-sharing-labels))",
     "condition `LabelsContested`; Event on the SharingPolicy"},
    {{"PolicyGone"},
     warning,
     "a SharingPolicy with a stop (mode Observe or Approve, paused, windows, a paused or aborted rollout) was "
     "deleted. The stop still applies to its nodes",
     "create the policy again; or create another policy for these nodes with at least the same priority; or run "
     "the command in the message ([rollout-rules.md](rollout-rules.md#stops-that-outlive-their-object))",
     "finding; Event on the SharingPolicy or the ClusterPolicy"},
    {{"CRDsGone"},
     warning,
     "the SharingPolicy/SharingRollout CRDs were installed and are not any more. The last specs of the policies "
     "govern, with their modes, pauses, windows and budgets",
     "install the CRDs and apply the policies again; or run the command in the message: then the operator's "
     "flags govern",
     "finding; Event on the SharingPolicy or the ClusterPolicy"},
    {{"ReplicasBelowUse"},
     warning,
     "pods request more than the new profile will serve on the named nodes",
     "keep more replicas, or let these pods end; under `Interrupt` the operator does not wait for them. Where "
     "the number of GPUs is not known, one counts: GFD, or the annotation `gpusharing.dev/devices`, makes it "
     "known",
     "finding"},
    {{"JobSpansNodes"},
     warning,
     "members of one job run on several nodes that are to be changed, and gang peers are evicted together or not "
     "at all",
     "wait; raise `maxUnavailable` if the budgets can never cover them all "
     "([rollout-rules.md](rollout-rules.md#jobs-on-several-nodes))",
     "finding"},
    {{"NodesLeftBehind"},
     warning,
     "under `mechanism: DaemonSetRestart`, the DaemonSets were restarted, and the new pods of the named nodes "
     "are not newer than the edit (made in the same second, or by an API server whose clock is behind)",
     "nothing: after `verifyTimeout` the operator restarts these nodes one by one",
     "finding"},
};

constexpr CodeRow kRollouts[] = {
    {{"CanaryPassed", "WaveStarted"},
     info,
     "Events of a SharingRollout: its canary has shown the revision for the soak, and a wave (as many nodes "
     "as `maxUnavailable`) starts; of more than twenty waves about twenty are reported",
     "no action needed",
     "Event on the SharingRollout"},
    {{"GPUOperatorUpdating"},
     info,
     "the ClusterPolicy announces a configuration that its DaemonSets do not have yet; no rollout starts "
     "meanwhile",
     "wait; if it lasts for more than two minutes the message says more (`DaemonSetDiffers`)",
     "condition"},
    {{"RollingUpdateStalled"},
     warning,
     "a new template of the DaemonSets (updateStrategy RollingUpdate) has replaced no pod for "
     "`verifyTimeout`; the nodes run the old one",
     "`kubectl -n NAMESPACE rollout status daemonset NAME`: a pod that does not become Ready, or a node that "
     "is NotReady, holds `maxUnavailable` of the DaemonSet",
     "condition; finding"},
    {{"Settling"},
     info,
     "the plugin's ConfigMap or its DaemonSets change again and again, less than `settle-period` apart, so "
     "nothing starts",
     "find out which client writes there (`kubectl get configmap NAME -o yaml --show-managed-fields`), or "
     "set a shorter `settle-period`",
     "condition"},
    {{"KeyNotProjected"},
     info,
     "a label must select a key that is new in the ConfigMap, or was edited (or the operator has just "
     "started): its text must reach the kubelets first (100 s)",
     "wait: the message names the key. Edits of other keys do not count",
     "condition"},
    {{"CanaryDrifting"},
     info,
     "a verified canary stopped showing its profile during its soak: no other node starts",
     "check its pods; it is restarted if that lasts for `verifyTimeout`, and fails (`MaxFailures`) if that "
     "does not help; or edit the profile back",
     "condition"},
    {{"MaxFailures"},
     error,
     "a rollout stopped: one failure in the canary, `maxFailures` after it",
     "check the failed nodes; edit the profile (a new revision starts at its canary), `gpu-sharing-operator "
     "rollout undo`, or `rollout start` to retry the same revision",
     "condition, phase; Event on the SharingRollout"},
    {{"RolledBack", "Undone"},
     warning,
     "an inline profile failed, or a person undid it: its nodes return to the last verified profile",
     "change the policy's profile, or `rollout start`",
     "phase; Event on the SharingRollout"},
};

constexpr CodeRow kInstallation[] = {
    {{"NodesWouldBreak"},
     warning,
     "the ClusterPolicy's new default would leave the named nodes without GPUs",
     "correct it before the GPU Operator changes them",
     "finding; Event on the object"},
    {{"UnstagedClusterPolicy"},
     warning,
     "the GPU Operator rolls out its DaemonSets itself, without waves",
     "`daemonsets.updateStrategy: OnDelete` makes such a change, also of an image, a staged rollout: pods of an "
     "older template are then replaced in waves, with a canary (not those that were already older when the "
     "operator was installed)",
     "finding; Event on the object"},
    {{"ClusterPolicyForbidden"},
     warning,
     "ClusterPolicies cannot be read (403). Rollouts continue with the DaemonSets' templates; unknown are a "
     "change that the GPU Operator has not started yet, and the nodes that it would break. Meanwhile the "
     "operator does not use mechanism `DaemonSetRestart` on its DaemonSets, and does not remove unused keys of "
     "inline profiles there",
     "grant get, list and watch on `clusterpolicies.nvidia.com` (the chart's ClusterRole has it)",
     "finding; Event on the object"},
    {{"ViewStale"},
     warning,
     "the watch that the message names has delivered nothing since then, for more than 150 seconds: no node is "
     "started and nothing is deleted until it does; nodes in a change continue by lists",
     "see [GpuSharingViewStale](runbooks.md#gpusharingviewstale)",
     "finding"},
    {{"DaemonSetDiffers"},
     warning,
     "DaemonSets of the GPU Operator have had another ConfigMap or `DEFAULT_CONFIG` than their ClusterPolicy "
     "says for more than two minutes: a person has changed them by hand, or the GPU Operator does not run. It "
     "compares hashes of what it wants, so it overwrites such a change only when it has something new to write. "
     "No rollout starts meanwhile",
     "set `spec.devicePlugin.config` of the ClusterPolicy to what is wanted, or check the GPU Operator's log",
     "finding"},
    {{"ForeignDevicePlugin"},
     warning,
     "a DaemonSet outside the operand namespaces has a container with the name of a part of the device plugin: "
     "anybody who can create DaemonSets in one namespace can make one, so it governs nothing",
     "add its namespace to the chart value `operandNamespaces` if it is yours; else ask who made it, and delete "
     "it",
     "finding"},
    {{"TooManyWatches"},
     warning,
     "the DaemonSets of the operand namespaces would need more than 256 watches: nothing is planned for the "
     "nodes of the namespaces that the message names",
     "delete device plugins that are not used, or take their namespaces out of `operandNamespaces`",
     "finding"},
    {{"OperandNamespacesUnknown"},
     warning,
     "at the first start nothing said where the device plugin runs (no `operandNamespaces`, no ClusterPolicy, no "
     "record): every namespace where a plugin was found counts from then on, and the record keeps this choice "
     "until the setting names some",
     "name the right namespaces in `operandNamespaces`",
     "finding"},
    {{"ConfigNotManaged"},
     warning,
     "a plugin, GFD or MPS DaemonSet reads a file of a ConfigMap by itself (`--config-file`, `CONFIG_FILE`), "
     "without a config-manager sidecar: edits are not rolled out, and take effect when its pods restart",
     "name the ConfigMap in `devicePlugin.config` of the ClusterPolicy, or in `config.name` of the device "
     "plugin's chart; or restart the pods yourself after an edit",
     "finding"},
    {{"ConfigMapReplacedByGitOps"},
     warning,
     "a GitOps tool removed a key that a policy needs from the plugin's ConfigMap; the operator has restored it",
     "ignore that key in Argo CD or Flux ([the chart](../charts/gpu-sharing-operator/README.md) ships how), or "
     "choose keys that are in Git",
     "finding; Event on the object"},
    {{"Forbidden"},
     warning,
     "a permission is missing; the message has the verb, the namespace, and the chart value that grants it",
     "set that value",
     "finding; Event on the object or its Namespace"},
    {{"Invalid"},
     warning,
     "the API server refuses a write as malformed; the message quotes it",
     "report it, with `support-bundle`",
     "finding; Event on the object or its Namespace"},
    {{"ForgetPoliciesUnreadable"},
     warning,
     "the annotation `gpusharing.dev/forget-policies` of the state ConfigMap is not a time: no stop is forgotten",
     "the command in the message",
     "finding"},
    {{"RecordUnreadable"},
     warning,
     "the state ConfigMap of the operator, or a part of the record beside it, is missing or not readable. No "
     "rollout starts",
     "[GpuSharingRecordUnreadable](runbooks.md#gpusharingrecordunreadable)",
     "finding; Event on the object"},
    {{"ChangeTimeUnknown"},
     warning,
     "a ConfigMap with profiles has no managedFields, so no pod counts as having loaded its present text",
     "print the manifests with `kubectl get … -o yaml --show-managed-fields`, or use `--from-cluster`",
     "`plan`, `audit`"},
    {{"OtherRestarter"},
     warning,
     "another tool restarts the plugin's pods when its ConfigMap changes (Reloader, Wave, `rollme`, checksum "
     "annotations): without canary, budgets or a check of workloads",
     "exclude the plugin's DaemonSets from it",
     "`audit`"},
    {{"SecondDevicePlugin", "SecondMPSDaemon"},
     warning,
     "HAMi, or the MPS daemon of kai-gpu-fractioning, gives GPUs of the node to pods beside the device plugin: "
     "both hand out the same GPU. As a warning: only HAMi's annotation is left on the node",
     "give the node to one of them, by their node selectors; remove an annotation that was left behind",
     "`audit`"},
    {{"DRABesidePlugin"},
     warning,
     "a DRA driver offers the GPUs of a node that the device plugin serves as well",
     "offer them by one of the two",
     "`audit`"},
    {{"LeaderElection"},
     info,
     "this replica now holds the Lease `gpu-sharing-operator`",
     "no action needed",
     "Event on the Lease"},
};

constexpr CodeRow kMpsDaemons[] = {
    {{"StandaloneMPSRefused"},
     warning,
     "the pod of the chart's standalone MPS daemon says why it cannot run on the node, or the container "
     "crashes, or a second MPS control daemon was started on the node",
     "do what the message says; it has all that is missing. If it only says that the pod is not Ready, "
     "`kubectl describe pod` has what its readiness probe says",
     "finding"},
    {{"StandaloneMPSWaits"},
     warning,
     "the standalone MPS daemon of a node, or of several, is not replaced yet: GPU clients run there (under "
     "`workloads: Evict` the message names those that the operator does not evict, and why), the policy "
     "closes a gate, or the node is NotReady in its change and keeps its slot",
     "wait, delete the pods, open the gate that the message names, or bring the node back",
     "finding"},
    {{"StandaloneMPSFailed"},
     warning,
     "the new standalone MPS daemon of a node is not Ready within `verifyTimeout`. The node keeps its "
     "cordon, and no further node starts",
     "correct the chart's `standaloneMps` values with `helm upgrade`; or what the message names on the node, "
     "and then: `gpu-sharing-operator rollout start POLICY`",
     "finding"},
    {{"MPSDirectoryUnlabelled"},
     warning,
     "the standalone MPS daemon of a node is in a directory that no label's value can express: the node has "
     "no label `gpusharing.dev/mps-pipe-directory`",
     "choose another `standaloneMps.pipeDirectory` if pods must select nodes by it",
     "finding"},
    {{"MPSDirectoryOfOthers"},
     warning,
     "a node has the label `gpusharing.dev/mps-pipe-directory`, no standalone MPS daemon runs there, and the "
     "operator did not set the label: pods that select nodes by it might get the whole GPU",
     "remove the label (`kubectl label node NODE gpusharing.dev/mps-pipe-directory-`), and stop the client "
     "that sets it",
     "finding"},
    {{"MPSUncleanExit"},
     warning,
     "the MPS control daemon was killed (exit code 137, usually for memory), so it did not reset its GPUs: "
     "they might stay in compute mode EXCLUSIVE_PROCESS, where one process at a time gets a context",
     "`nvidia-smi -q -d COMPUTE` on the node; `nvidia-smi -c DEFAULT`, or reboot it. Raise the daemon's "
     "memory limit",
     "finding; Event on the Node"},
};

constexpr CodeRow kSlices[] = {
    {{"PartitioningSkipped"},
     warning,
     "`node.partitioning` leaves this node, its key or its ConfigMap alone, and the message says why: a GPU "
     "before Volta, MIG, a report of slices that cannot be read, a node that is not Ready, pods that use "
     "more slices than the node reports, a ConfigMap near its limit of 1 MiB",
     "what the message says. Nothing is taken from pods meanwhile",
     "finding"},
    {{"PartitioningNeedsFork"},
     warning,
     "the official device plugin serves a node with nos's label, and slices of different sizes need Nebuly's "
     "fork of it",
     "let the fork serve the node, or remove the label and share its GPUs by profiles "
     "([migration.md](migration.md#beside-nos))",
     "finding"},
    {{"PartitioningObserves"},
     warning,
     "nos's gpu-partitioner renews its Lease, so the operator only observes; or partitioning is only "
     "observed, and the finding names the slices that a node would get",
     "nothing while nos is to stay. To hand over, scale gpu-partitioner to 0 "
     "([migration.md](migration.md#from-nos-to-this-operator)). To partition: `modes.partitioning: Enforce`",
     "finding"},
    {{"PartitioningOff"},
     warning,
     "nodes are labelled for partitioning, and it is switched off",
     "nothing if nos runs there; else `modes.partitioning` ([partitioning.md](partitioning.md))",
     "finding"},
    {{"PartitioningReleased"},
     info,
     "the node lost the label of nos: its profile label is what it was before, and the operator's annotation "
     "is gone. A node whose owner removed only the former name of the label is released once no pod uses "
     "slices there",
     "nothing, if that was intended",
     "Event on the Node"},
    {{"PartitioningReportStale"},
     warning,
     "nos's gpu-agent is not ready on the node, or no pod of it runs there: the node's report of slices can "
     "be from before, so its GPUs are not cut, and a label that moved is not confirmed",
     "repair the agent: the message names its pod (`kubectl logs`, `kubectl describe`); without a pod, look "
     "at the agent's DaemonSet and the node's taints",
     "finding"},
    {{"PartitioningUnconfirmed"},
     warning,
     "the node's label names a key, and the node does not report the slices of that key yet; or it cannot, "
     "because the key has slices of GPUs that the node no longer has; or pods use slices that the node does "
     "not report",
     "wait: after 15 minutes the label returns to the key before. If it happens again, read the logs of the "
     "plugin's pod on that node. If GPUs are missing: repair the machine, or leave it: the next pod that "
     "waits gets a key without them",
     "finding"},
    {{"PartitioningRolledBack"},
     warning,
     "a node did not show its new slices in time, or pods use slices that the new key lacks: its label names "
     "the key before again. The node is tried again after ten minutes, then after twice as long, up to four "
     "hours. Or another client had moved the label while pods used slices of the operator's key",
     "read the logs of the plugin's pod on that node; keep other clients from the label "
     "`nvidia.com/device-plugin.config` there",
     "finding; Event on the Node"},
    {{"SlicePlanned"},
     info,
     "the pod waits for a slice, and the node that will have it is named",
     "no action needed",
     "Event on the Pod"},
    {{"SliceUnavailable"},
     warning,
     "no node can give the pod its slice without taking one that a pod uses; the nearest alternative and its "
     "holders are named",
     "end one of the holders, ask for a smaller slice, or add a node",
     "Event on the Pod"},
    {{"SliceTooLarge"},
     warning,
     "no GPU of the cluster has that much memory for one slice",
     "ask for a smaller slice",
     "Event on the Pod"},
    {{"SliceRequestRefused"},
     warning,
     "a container asks for more than one slice of a size: an MPS client uses one GPU, so the others would be "
     "taken and unused",
     "ask for one slice of the sum",
     "Event on the Pod"},
};

}  // namespace

std::vector<CodeSection> codes_reported() {
  const auto section = [](std::string_view title, std::string_view intro, std::span<const CodeRow> rows) {
    return CodeSection{title, intro, {rows.begin(), rows.end()}, CodeSection::Kind::reported};
  };
  return {codes_reported_of_nodes(),
          section("Policies and what they do", "", kPolicies),
          section("Rollouts",
                  "Each is a reason of the condition `Progressing`, or an Event of the SharingRollout. Its further "
                  "Events have the name of its new phase (`Paused`, `AwaitingApproval`, `Completed`, `Superseded`): "
                  "`gpu-sharing-operator rollout status` prints the way out of each stop.",
                  kRollouts),
          section("The installation", "", kInstallation),
          section("MPS daemons", "", kMpsDaemons),
          section("Slices for pending pods",
                  "`SlicePlanned` and the like are Events of pods that wait; the rest is about nodes "
                  "([partitioning.md](partitioning.md)).",
                  kSlices)};
}

}  // namespace gso
