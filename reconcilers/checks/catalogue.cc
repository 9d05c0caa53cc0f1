// The rows. The rows of the checks' codes are in chain.cc and object_checks.cc.
#include "reconcilers/checks/catalogue.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "reconcilers/checks/check.h"
#include "reconcilers/checks/inference_memory.h"
#include "reconcilers/checks/object_checks.h"
#include "reconcilers/model/labels.h"

namespace gso {
namespace {

using enum Severity;

constexpr std::string_view kOfTheChain = "The setup of a node";
constexpr std::string_view kOfObjects = "ConfigMaps, ClusterPolicies and DaemonSets";

CodeEntry of_check(std::string_view code) {
  const Check* check = find_check(code);
  return check == nullptr ? CodeEntry{} : CodeEntry{{check->code}, check->severity, check->meaning, check->remedy};
}

constexpr BlockedReason kBlockedReasons[] = {
    {kBudgetExhausted, "as many nodes are out of service as the budget allows, whoever took them out",
     "the message says who holds the budget: bring those nodes back, or raise `maxUnavailable`",
     "gpu-sharing-operator status"},
    {kWaitingForWorkloads,
     "pods use the node's GPUs, and the change would break them; under `Evict` the message names those without a "
     "controller",
     "wait, end the pods, or choose `workloads: Evict` or `Interrupt`; for pods without a controller "
     "`rollout.evictBarePods: true`",
     "kubectl get pods --all-namespaces --field-selector spec.nodeName={node}"},
    {kDeferred,
     "the change of the node was deferred, because its pods did not end within `idleTimeout` or a person uncordoned "
     "it; "
     "the message says until when",
     "nothing: it is retried then, when no other node of its group waits; or retry it now",
     "gpu-sharing-operator rollout start {policy}"},
    {kPdbRefuses, "a PodDisruptionBudget refuses an eviction; the message has the pod and the budget's answer",
     "scale the workload up, or change its budget", "kubectl get poddisruptionbudgets --all-namespaces"},
    {kForbidden,
     "`workloads: Evict`, and the operator may not evict; the message has the pods, the server's answer and the chart "
     "value",
     "set `eviction.enabled=true`, or choose `workloads: WaitForIdle` or `Interrupt`"},
    {kLabelOwnedByOther, "somebody else wrote `nvidia.com/device-plugin.config` on the node",
     "remove that label, or set `takeover: true`", "kubectl label node {node} {label}-"},
    {kMigEnabled, "MPS does not work where MIG is enabled or `migStrategy` is mixed", "use time-slicing on that node"},
    {kMpsByLabelUnsupported, "from device plugin v0.18.2 on, an MPS profile selected by label never gets there",
     "make the MPS key the default (`devicePlugin.config.default`), and label the nodes that shall run something else"},
    {kDriverUpgrade, "the driver manager has paused the node's operands", "wait until it is finished",
     "kubectl get node {node} -L nvidia.com/gpu-driver-upgrade-state"},
    {kMigChange, "the MIG manager has paused the node's operands", "wait until it is finished",
     "kubectl get node {node} -L nvidia.com/mig.config.state"},
    {kQuarantined,
     "a remediation system has taken the node out of service, by the label or taint that the message names "
     "(NVSentinel, "
     "SageMaker HyperPod, GKE, AKS, medik8s, Karpenter, `node.kubernetes.io/out-of-service`): it is not changed and "
     "not "
     "repaired",
     "wait until that system gives the node back; a mark that it has left behind is yours to remove",
     "kubectl describe node {node}"},
    {kRenameStrandsPods, "running pods ask for the resource name that would go away", "end or change those pods first",
     "kubectl get pods --all-namespaces --field-selector spec.nodeName={node}"},
    {kKaiReservations,
     "KAI shares GPUs of the node by reservations, and the profile shares them by replicas: only one of the two can",
     "drain the fraction pods, or keep KAI off the node ([kai.md](kai.md))",
     "kubectl get pods --all-namespaces -l runai-gpu-group --field-selector spec.nodeName={node}"},
    {kOutsideWindow,
     "the policy's maintenance windows are closed; the message has the next opening, or that there is none",
     "wait, or change `rollout.maintenanceWindows`"},
    {kHeld, "the node carries `gpusharing.dev/hold=true`, as an annotation or as a label",
     "remove it: `kubectl annotate node NODE gpusharing.dev/hold-`, or `kubectl label node NODE gpusharing.dev/hold-`"},
    {kConfigInvalid, "a component would exit on the profile, or a policy's `configMapKey` is not in the ConfigMap",
     "the message has key, line and reason; fix the profile, or the policy's key: nothing was restarted into it"},
    {kProviderUnsupported,
     "nothing there can bring the profile in: no MPS DaemonSet selects the node, the plugin exits on its own flags or "
     "variables, a GFD with another ConfigMap does not write `nvidia.com/mps.capable`, DRA, a managed plugin",
     "the message says what is missing"},
    {kTaintNotTolerated,
     "the node has a taint (NoSchedule or NoExecute) that a plugin, GFD or MPS DaemonSet does not tolerate, while its "
     "pod "
     "still runs there: the node is counted, and nothing on it is restarted, because a deleted pod would not come back",
     "the message names the taint and the DaemonSet: remove the taint, or add the toleration "
     "(`spec.daemonsets.tolerations` of the ClusterPolicy; `tolerations` of the device plugin's chart). A node whose "
     "pods "
     "the taint has ended already is no node of the plugin any more"},
    {kDraDoubleOffer,
     "a DRA driver offers the node's GPUs as well, and a DeviceClass has `extendedResourceName: nvidia.com/gpu`: a "
     "restart of the plugin would let the scheduler hand the same GPU out a second time",
     "remove `extendedResourceName` from the DeviceClass, or keep the DRA driver off nodes of the device plugin",
     "kubectl get deviceclasses --output "
     "custom-columns=NAME:.metadata.name,RESOURCE:.spec.extendedResourceName"},
    {kLabelsMissing,
     "GPU Feature Discovery serves the node, and its label `nvidia.com/gpu.product` is not there (for a moment: NFD or "
     "GFD restarts): which group, budget and canary it belongs to is not known, so that it does not start",
     "nothing, if it passes; else look at the pods of GPU Feature Discovery and Node Feature Discovery",
     "kubectl get pods --all-namespaces --field-selector spec.nodeName={node}"},
};

std::vector<CodeSection> sections() {
  return {
      {"YAML",
       "",
       {
           {{"SyntaxError"},
            error,
            "the text is no YAML, as the plugin's library reads it",
            "correct the line; what is not closed is named where it opens or where the next token is missing; where "
            "either of two lines can be the wrong one (`mps: 4`, and something nested below it) each has an error"},
           {{"UnknownAnchor"},
            error,
            "`*name` without an `&name` before it",
            "define the anchor, or write the value out"},
           {{"AliasContainsItself"}, error, "an anchor's value refers to itself", "write the value out"},
           {{"TooManyAliases"}, error, "aliases make up nearly all of the document", "write the values out"},
           {{"MergeNeedsMapping"},
            error,
            "`<<` with something that is no mapping",
            "give it a mapping, or a list of mappings"},
           {{"KeyNotScalar"}, error, "a list or mapping as a key", "use a string"},
           {{"KeyNotString"}, error, "null or a number beyond 63 bits as a key", "use a string"},
           {{"ValueContradictsTag"}, error, "`!!int four`", "correct the value, or leave the tag out"},
           {{"NumberNotFinite"}, error, "`.inf` or `.nan`, which JSON does not have", "write a number"},
           {{"TooDeep"}, error, "more than 500 levels", "flatten the document"},
           {{"TooLarge"}, error, "more than 1 MiB in one profile", "split it; a ConfigMap takes 1 MiB"},
           {{"DuplicateKey"}, warning, "a key stands twice, the last one counts", "remove one"},
           {{"MergeOverridesKey"}, warning, "a `<<` after a key overwrites it", "put `<<` first"},
           {{"FurtherDocumentIgnored", "FurtherTextIgnored"},
            warning,
            "only the first document of a profile is read",
            "remove what follows, or make it a key of its own"},
       }},
      {"Profiles: what the parser refuses",
       "",
       {
           {{"WrongType"},
            error,
            "a list where a mapping must stand, a quoted number, …",
            "write the type that the message names"},
           {{"UnknownVersion"}, error, "`version` is not `v1`", "write `version: v1`"},
           {{"InvalidDuration"}, error, "no Go duration", "write `60s`, `1h30m` or `infinite`"},
           {{"NoResources"},
            error,
            "a section without entries",
            "add one, or leave the section out: that is how sharing is turned off"},
           {{"NameMissing", "PatternMissing"}, error, "an entry lacks the field", "add it"},
           {{"NameInvalid"},
            error,
            "no resource of `nvidia.com/`, or characters that a name may not have",
            "use `nvidia.com/gpu` or `nvidia.com/mig-<profile>`"},
           {{"NameTooLong"}, error, "more than 63 characters with `nvidia.com/`", "shorten it"},
           {{"ReplicasMissing"}, error, "no `replicas`", "add it"},
           {{"ReplicasNotInteger"}, error, "4.5, or beyond 63 bits", "write a whole number"},
           {{"ReplicasBelowMinimum"}, error, "below 2", "write 2 or more; for no sharing leave the section out"},
           {{"DevicesInvalid"}, error, "no form that `devices` may have", "leave it out"},
       }},
      {"Profiles: what makes a component exit",
       "",
       {
           {{"UnknownMigStrategy"}, error, "not `none`, `single` or `mixed`: plugin and GFD exit", "use one of them"},
           {{"UnknownDiscoveryStrategy"}, error, "not `auto`, `nvml` or `tegra`: the plugin exits", "use one of them"},
           {{"UnknownDeviceIDStrategy"}, error, "not `uuid` or `index`: the plugin exits", "use one of them"},
           {{"UnknownDeviceListStrategy"},
            error,
            "not `envvar`, `volume-mounts`, `cdi-annotations` or `cdi-cri`: the plugin exits",
            "use these"},
           {{"UnknownAllocationPolicy"}, error, "not `distributed` or `packed`: the plugin exits", "use one of them"},
           {{"InvalidImexChannels"}, error, "something but `[]` or `[0]`: the plugin exits", "use one of them"},
           of_check("MPSWithMixedMIG"),
           of_check("MPSReplicasAboveMaximum"),
           of_check("MPSMatchesNothing"),
       }},
      {"Profiles: what is silently ignored, or worth knowing",
       "",
       {
           {{"UnknownField"},
            warning,
            "no such field; in a SharingPolicy the API server drops it",
            "correct the name or the place that the message suggests"},
           {{"WrongCase"}, warning, "upper and lower case count there", "write it as the message says"},
           {{"UnusualCase"}, info, "read all the same", "write it in the usual case"},
           {{"DuplicateEntry"},
            warning,
            "two entries for one resource: GFD takes the first, the plugin the largest",
            "keep one"},
           of_check("NameMatchesNothing"),
           {{"RenameIgnored"}, warning, "`rename` is not supported", "use `renameByDefault: true`"},
           {{"DevicesIgnored"}, warning, "`devices` is not supported", "leave it out: all GPUs are shared"},
           {{"ResourcesIgnored"}, warning, "custom `resources` are not supported", "leave them out"},
           {{"TimeSlicingIgnored"}, warning, "both sections: MPS wins", "remove one"},
           {{"DurationWithoutUnit"}, warning, "a bare number counts nanoseconds", "add a unit"},
           {{"ReplicasBeyondReason"}, warning, "the device list would be too long for the kubelet", "fewer replicas"},
           {{"EmptySection"}, info, "`mps:` without a value means no MPS", "remove it"},
           {{"MPSWithSingleMIG"}, info, "works only where no GPU has MIG enabled", "check the nodes"},
           {{"MPSReplicasNeedTuring"}, info, "more than 16 replicas need compute capability 7.5", "check the nodes"},
           {{"FailRequestsByVersion"},
            info,
            "`failRequestsGreaterThanOne: false` under MPS is honoured from v0.20.0 on",
            "upgrade the plugin"},
           {{"NothingWritten"},
            info,
            "an empty file, or one of comments: a profile without sharing, as for the plugin",
            "nothing, if that is meant"},
           {{kPartitionedByNos},
            info,
            "a profile that nos has written for its own device plugin, by the Nodes and DaemonSets given beside the "
            "ConfigMap: not checked",
            "nothing"},
           {{"MoreNotShown"}, info, "more than 100 of a kind", "correct those that are shown"},
           {{"NotChecked"}, info, "a kind that lint does not check", "nothing"},
       }},
      {kOfTheChain,
       "About the Node (or, for many, once about the DaemonSet), by `lint` of manifests, by `plan`, and by the "
       "operator before it touches the node. Where a code blocks a node, `explain` shows the reason of the block "
       "beside it.",
       {}},
      {kOfObjects,
       "`plan` and the operator add `NodesWouldBreak` about a Node that what the ClusterPolicy announces, and the "
       "DaemonSets do not have yet, would leave without GPUs: correct it before the GPU Operator gets there.",
       {
           {{"BinaryDataInvalid"},
            error,
            "a value of `binaryData` that the API server refuses",
            "encode it, or write the profile below `data`"},
           {{"KeyTwice"}, error, "a key of `data` and of `binaryData`, which the API server refuses", "keep one"},
           {{"NameNoVolumeName"},
            info,
            "the same as `ConfigMapNameNoVolume`, where no ClusterPolicy is known",
            "rename it"},
       }},
      {"Pods",
       "",
       {
           {{"KAICannotPlace"},
            error,
            "the Nodes, kai-config or RuntimeClasses given beside the pod leave no place for it: too much memory or "
            "too many devices, no `nvidia.com/gpu.memory` label, a missing RuntimeClass, an unscheduled scaling pod",
            "as the message says"},
           {{"KAIReservationWithoutToleration"},
            error,
            "a Node given beside the pod has a NoExecute taint that the pod tolerates and KAI's reservation does not",
            "keep the pod off that node, or upgrade KAI"},
           {{"KAISharingDisabled"},
            error,
            "a fraction is requested and KAI's GPU sharing is off",
            "turn it on, or request whole GPUs"},
           {{"MPSWithoutFraction"}, error, "`mps: \"true\"` without a fraction or memory", "add one"},
           {{"FractionWithWholeGPU"}, error, "a fraction and a limit of `nvidia.com/gpu`", "remove one"},
           {{"MemoryWithOtherRequest"}, error, "`gpu-memory` and a fraction or limit", "remove one"},
           {{"DevicesWithoutFraction"}, error, "`gpu-fraction-num-devices` alone", "add a fraction or memory"},
           {{"GPUMemoryInvalid"},
            error,
            "no whole number of MiB above 0 that the binder can read",
            "write MiB without a unit"},
           {{"GPUFractionInvalid"}, error, "not above 0 and below 1", "write `\"0.5\"`"},
           {{"NumDevicesInvalid"}, error, "no whole number of 1 or more", "write one"},
           {{"ContainerNotFound"}, error, "no container of that name", "correct the name"},
           {{"AnnotationNoString", "SelectorNoString"}, error, "a value without quotes", "put it in quotes"},
           {{"AnnotationIgnored"}, warning, "has no effect there", "remove it"},
           {{"FractionWithOtherGPUResource"},
            warning,
            "a fraction beside another GPU resource gives two GPUs",
            "use one of the two"},
           {{kMemoryFractionAboveSlice},
            warning,
            "vLLM, SGLang or TensorRT-LLM reserves a fraction of the whole GPU, and MPS gives each client only "
            "1/replicas of "
            "its memory",
            "set the flag to the number that the message names"},
           {{"PipeDirectoryMisspelt"}, warning, "`/tmp/nvidia-smp`", "`/tmp/nvidia-mps`"},
           {{"NoPipeDirectory", "NoHostIPC"},
            info,
            "the pod would run beside MPS, not in it",
            "mount the pipe directory, set `hostIPC`"},
       }},
      {"SharingPolicies",
       "",
       {
           {{kSelectorOnSharingLabel},
            error,
            "`nodeSelector` goes by a label that sharing or the operator itself changes (`nvidia.com/gpu.replicas`, "
            "`nvidia.com/gpu.sharing-strategy`, `nvidia.com/mps.capable`, …): the policy would lose nodes by changing "
            "them. "
            "It governs no node",
            "select by a label that stays, for example that of a node pool"},
           {{"SharedSuffixIgnored"},
            warning,
            "products are compared without `-SHARED`, which sharing adds",
            "leave the suffix out"},
           {{"ProfileNotUnique"}, error, "not exactly one of `configMapKey` and `inline`", "keep one"},
           {{"UnknownValue"}, error, "no allowed word", "use one that the message names"},
           {{"OutOfRange"}, error, "a number that is not allowed", "see the message"},
           {{"EvictNeedsCordon"}, error, "`workloads: Evict` with `cordon: false`", "drop `cordon: false`"},
           {{"DaemonSetRestartInterrupts", "DaemonSetRestartHasNoCanary", "DaemonSetRestartHasNoWindows",
             "DaemonSetRestartPauses"},
            error,
            "that mechanism has no gate for each node",
            "`workloads: Interrupt`, `canary.nodesPerGroup: 0`, no windows, `onFailure: Pause`"},
           {{"InvalidWindow"},
            error,
            "a maintenance window whose cron expression, duration or time zone cannot be read: it would never open",
            "what the message says; see [sharing-objects.md](sharing-objects.md)"},
           {{"NothingShared"}, error, "`strategy: none` with `replicas`", "drop `replicas`, or name a strategy"},
           {{"MPSSharesGPUsOnly"},
            error,
            "`strategy: mps` for another resource than `nvidia.com/gpu`",
            "`strategy: time-slicing`, or `nvidia.com/gpu`"},
       }},
  };
}

std::vector<CodeSection> complete() {
  std::vector<CodeSection> out = sections();
  std::set<std::string_view> listed;
  for (const CodeSection& section : out) {
    for (const CodeEntry& entry : section.entries) listed.insert(entry.codes.begin(), entry.codes.end());
  }
  const auto objects = std::ranges::find(out, kOfObjects, &CodeSection::title);
  std::vector<CodeEntry> rows;
  for (const ObjectCheck& check : object_checks()) {
    const Check* of_nodes = find_check(check.code);
    if (of_nodes != nullptr && of_nodes->listed) continue;  // The section of the chain has it.
    rows.push_back(of_nodes != nullptr ? of_check(check.code)
                                       : CodeEntry{{check.code}, check.severity, check.meaning, check.remedy});
    listed.insert(check.code);
  }
  objects->entries.insert(objects->entries.begin(), rows.begin(), rows.end());
  const auto chain = std::ranges::find(out, kOfTheChain, &CodeSection::title);
  for (const Check& check : checks()) {
    if (!listed.contains(check.code)) chain->entries.push_back(of_check(check.code));
  }
  return out;
}

}  // namespace

const std::vector<CodeSection>& code_catalogue() {
  static const std::vector<CodeSection> kCatalogue = complete();
  return kCatalogue;
}

const CodeEntry* find_code(std::string_view code) {
  for (const CodeSection& section : code_catalogue()) {
    for (const CodeEntry& entry : section.entries) {
      if (std::ranges::find(entry.codes, code) != entry.codes.end()) return &entry;
    }
  }
  return nullptr;
}

std::span<const BlockedReason> blocked_reasons() {
  return kBlockedReasons;
}

std::string_view remedy_of(std::string_view code_or_reason) {
  if (const CodeEntry* entry = find_code(code_or_reason)) return entry->remedy;
  const auto* reason = std::ranges::find(kBlockedReasons, code_or_reason, &BlockedReason::reason);
  return reason == std::end(kBlockedReasons) ? std::string_view() : reason->remedy;
}

}  // namespace gso
