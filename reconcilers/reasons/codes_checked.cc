// The codes of what `lint` and preflight check: profiles, ConfigMaps, Helm values, pods, SharingPolicies. A row with a
// code alone is a check of the chain (reconcilers/checks), which has the rest.
#include "reconcilers/reasons/codes.h"
#include "reconcilers/reasons/names.h"

namespace gso {
namespace {

constexpr CodeRow kYaml[] = {
    error_row({"SyntaxError"}, "the plugin's YAML library cannot parse the text",
              "correct the line; an unclosed quote is reported where it opens, an unclosed bracket where the "
              "next token is missing; if either of two lines can be wrong (`mps: 4` with a value nested below "
              "it), each has an error"),
    error_row({"UnsupportedYAML"},
              "a form that the operator does not read, whatever the plugin makes of it: UTF-16, a byte order "
              "mark inside the text, comments in JSON, and inside `[]` and `{}` a `?` in a text without quotes, "
              "a `:` before a bracket or comma, a tag without a value",
              "see the message"),
    error_row({"UnknownAnchor"}, "`*name` without an `&name` before it", "define the anchor, or write the value out"),
    error_row({"AliasContainsItself"}, "an anchor's value refers to itself", "write the value out"),
    error_row({"TooManyAliases"}, "aliases make up nearly all of the document", "write the values out"),
    error_row({"MergeNeedsMapping"}, "`<<` with a value that is not a mapping",
              "give it a mapping, or a list of mappings"),
    error_row({"KeyNotScalar"}, "a list or mapping as a key", "use a string"),
    error_row({"KeyNotString"}, "null or a number beyond 63 bits as a key", "use a string"),
    error_row({"ValueContradictsTag"}, "`!!int four`", "correct the value, or leave the tag out"),
    error_row({"NumberNotFinite"}, "`.inf` or `.nan`, which JSON does not have", "write a number"),
    error_row({"TooDeep"}, "more than 500 levels", "flatten the document"),
    error_row({"TooLarge"}, "more than 1 MiB under one key, or all keys, of a ConfigMap, or in a profile's file",
              "shorten it; a ConfigMap holds at most 1 MiB"),
    warning_row({"DuplicateKey"}, "a key appears twice; the last one is used", "remove one"),
    warning_row({"MergeOverridesKey"}, "a `<<` after a key overwrites it", "put `<<` first"),
    warning_row({"FurtherDocumentIgnored", "FurtherTextIgnored"}, "only the first document of a profile is read",
                "remove the text after it, or make it a key of its own"),
};

constexpr CodeRow kParser[] = {
    error_row({"WrongType"}, "a list instead of a mapping, a quoted number, …",
              "write the type that the message names"),
    error_row({"UnknownVersion"}, "`version` is not `v1`", "write `version: v1`"),
    error_row({"InvalidDuration"}, "not a Go duration", "write `60s`, `1h30m` or `infinite`"),
    error_row({"NoResources"}, "a section without entries", "add one; to disable sharing, leave the section out"),
    error_row({"NameMissing", "PatternMissing"}, "an entry lacks the field", "add it"),
    error_row({"NameInvalid"}, "not a resource of `nvidia.com/`, or characters that are not allowed in its name",
              "use `nvidia.com/gpu` or `nvidia.com/mig-<profile>`"),
    error_row({"NameTooLong"}, "more than 63 characters with `nvidia.com/`", "shorten it"),
    error_row({"ReplicasMissing"}, "no `replicas`", "add it"),
    error_row({"ReplicasNotInteger"}, "4.5, or beyond 63 bits", "write a whole number"),
    error_row({"ReplicasBelowMinimum"}, "below 2", "write 2 or more; to disable sharing, leave the section out"),
    error_row({"DevicesInvalid"}, "not an allowed form of `devices`", "leave it out"),
};

constexpr CodeRow kExits[] = {
    error_row({"UnknownMigStrategy"}, "not `none`, `single` or `mixed`: plugin and GFD exit", "use one of them"),
    error_row({"UnknownDiscoveryStrategy"}, "not `auto`, `nvml` or `tegra`: the plugin exits", "use one of them"),
    error_row({"UnknownDeviceIDStrategy"}, "not `uuid` or `index`: the plugin exits", "use one of them"),
    error_row({"UnknownDeviceListStrategy"},
              "not `envvar`, `volume-mounts`, `cdi-annotations` or `cdi-cri`: the plugin exits",
              "use one or more of them"),
    error_row({"UnknownAllocationPolicy"}, "not `distributed` or `packed`: the plugin exits", "use one of them"),
    error_row({"InvalidImexChannels"}, "not `[]` or `[0]`: the plugin exits", "use one of them"),
    {{"MPSWithMixedMIG"}},
    {{"MPSReplicasAboveMaximum"}},
    {{"MPSMatchesNothing"}},
};

constexpr CodeRow kIgnored[] = {
    warning_row({"UnknownField"}, "no such field; in a SharingPolicy or ClusterPolicy the API server drops it",
                "correct the name or the place that the message suggests"),
    warning_row({"WrongCase"}, "the name is case-sensitive", "write it as the message says"),
    info_row({"UnusualCase"}, "accepted in spite of its upper and lower case", "write it in the usual case"),
    warning_row({"DuplicateEntry"}, "two entries for one resource: GFD uses the first, the plugin uses the largest",
                "keep one"),
    {{"NameMatchesNothing"}},
    warning_row({"RenameIgnored"}, "`rename` is not supported", "use `renameByDefault: true`"),
    warning_row({"DevicesIgnored"}, "`devices` is not supported", "leave it out: all GPUs are shared"),
    warning_row({"ResourcesIgnored"}, "custom `resources` are not supported", "leave them out"),
    warning_row({"TimeSlicingIgnored"}, "both sections are set: only `mps` is used", "remove one"),
    warning_row({"DurationWithoutUnit"}, "a number without a unit means nanoseconds", "add a unit"),
    warning_row({"ReplicasBeyondReason"}, "the device list would be too long for the kubelet", "use fewer replicas"),
    info_row({"EmptySection"}, "`mps:` without a value means no MPS", "remove it"),
    info_row({"MPSWithSingleMIG"}, "works only where no GPU has MIG enabled", "check the nodes"),
    info_row({"MPSReplicasNeedTuring"}, "more than 16 replicas need compute capability 7.5", "check the nodes"),
    info_row({"FailRequestsByVersion"}, "`failRequestsGreaterThanOne: false` under MPS is honoured from v0.20.0 on",
             "upgrade the plugin"),
    info_row({"NothingWritten"},
             "the file is empty or has only comments; the plugin treats that as a profile without sharing",
             "no action needed if the nodes must not share GPUs"),
    info_row({kPartitionedByNos},
             "not checked: according to the Nodes and DaemonSets in the input, nos wrote this profile for its "
             "own device plugin",
             "no action needed"),
    info_row({"MoreNotShown"}, "more than 100 errors or 100 other diagnostics in a document",
             "correct the diagnostics that are shown"),
    info_row({"NotChecked"}, "a kind that lint does not check", "no action needed"),
};

constexpr CodeRow kObjects[] = {
    {{"SettingInvalid"}},
    {{"ConfigMapMissing"}},
    {{"ConfigMapInWrongNamespace"}},
    {{"ConfigMapNameNoVolume"}},
    {{"ConfigMapNameCollides"}},
    {{"NoProfiles"}},
    {{"KeyNoLabelValue"}},
    error_row({"KindMissing"}, "an object without a kind", "write its kind"),
    error_row({"BinaryDataInvalid"}, "a value of `binaryData` that the API server refuses",
              "encode it, or write the profile under `data`"),
    error_row({"KeyRefused"},
              "a key that no ConfigMap can have, as the API server says: a slash, a space, `..` at the front, "
              "more than 253 characters",
              "rename it"),
    error_row({"KeyTwice"}, "a key is in `data` and in `binaryData`, which the API server refuses", "keep one"),
    info_row({"HelmValues"},
             "Helm values with profiles, of the device plugin's chart (`config.map`) or the GPU Operator's "
             "(`devicePlugin.config.data`), in a values file, a HelmRelease or an Application: these are "
             "checked, and no other value",
             "no action needed"),
    error_row({"HelmValuesRefused"},
              "`config.name` and `config.map` in the values of the device plugin's chart, which refuses both together",
              "remove one"),
    warning_row({"HelmValuesIncomplete"},
                "profiles for the GPU Operator's chart stand in values without `create: true`, which it ignores; the "
                "default names a key that they do not have, or `config.name` is missing beside it, so that the plugin "
                "reads no ConfigMap",
                "correct it, unless another values file or `--set` adds what is missing"),
    info_row({"NameNoVolumeName"}, "the same as `ConfigMapNameNoVolume`, if no ClusterPolicy is known", "rename it"),
};

constexpr CodeRow kPods[] = {
    // What KAI's admission or the API server refuses, and what neither notices.
    error_row(
        {"KAICannotPlace"},
        "KAI cannot place the pod with the Nodes, kai-config and RuntimeClasses in the input: too much memory or too "
        "many devices, no `nvidia.com/gpu.memory` label, a missing RuntimeClass, an unscheduled scaling pod",
        "see the message"),
    error_row({"KAIReservationWithoutToleration"},
              "a Node in the input has a NoExecute taint that the pod tolerates and KAI's reservation does not",
              "keep the pod off that node, or upgrade KAI"),
    error_row({"KAISharingDisabled"}, "a fraction is requested and KAI's GPU sharing is off",
              "enable it, or request whole GPUs"),
    error_row({"MPSWithoutFraction"}, "`mps: \"true\"` without a fraction or memory", "add one"),
    error_row({"FractionWithWholeGPU"}, "a fraction and a limit of `nvidia.com/gpu`", "remove one"),
    error_row({"MemoryWithOtherRequest"}, "`gpu-memory` and a fraction or limit", "remove one"),
    error_row({"DevicesWithoutFraction"}, "`gpu-fraction-num-devices` alone", "add a fraction or memory"),
    error_row({"GPUMemoryInvalid"}, "not a whole number of MiB above 0 that the binder can read",
              "write MiB without a unit"),
    error_row({"GPUFractionInvalid"}, "not above 0 and below 1", "write `\"0.5\"`"),
    error_row({"NumDevicesInvalid"}, "not a whole number of 1 or more", "write one"),
    error_row({"ContainerNotFound"}, "no container of that name", "correct the name"),
    error_row({"ResourceNotWhole"},
              "a fraction, a negative number or a word as the amount of GPUs, which the API server refuses: "
              "`nvidia.com/gpu: 500m`",
              "write a whole number; for a share of a GPU use a profile or KAI's annotations"),
    error_row({"RequestUnlikeLimit"},
              "a request of GPUs that differs from its limit, or has no limit, which the API server refuses",
              "write the limit alone"),
    error_row({"AnnotationNoString", "LabelNoString", "SelectorNoString"},
              "the value is not a string, which the API server refuses: `nvidia.mps/enabled: true`",
              "put it in quotes"),
    warning_row({"AnnotationMisspelt", "LabelMisspelt"},
                "a name that nothing reads and that looks like one of KAI's, of nos' or of the operator's: "
                "`gpu_fraction`, `gpu-fraction` as a label, `nvidia.com/device-plugin-config`",
                "write the name that the message has"),
    warning_row(
        {"ResourceMisspelt"},
        "a limit or request of a resource that no device plugin offers: `nvidia.com/gpus`; the pod stays Pending",
        "write the name that the message has"),
    warning_row({"FractionOfOlderMode"},
                "`gpu-fraction` or `gpu-memory` where KAI's mode is NvFractions, which reads them for older manifests",
                "write `nvidia.com/container.<container>.gpu-memory.request`"),
    warning_row({"NvFractionInvalid"},
                "a value of KAI's mode NvFractions that it does not accept, a container that the pod does not have, "
                "or an annotation that its binder writes",
                "see the message"),
    warning_row({"AnnotationIgnored"}, "the annotation has no effect there", "remove it"),
    warning_row({"FractionWithOtherGPUResource"},
                "a fraction together with another GPU resource gives the pod two GPUs", "use one of the two"),
    // What a client of MPS, or of a slice of nos, would miss.
    warning_row({"MemoryFractionAboveSlice"},
                "vLLM, SGLang or TensorRT-LLM reserves a fraction of the whole GPU, and MPS gives each client only "
                "1/replicas of its memory",
                "set the flag to the number that the message names"),
    info_row({"MemoryFractionUnknown"},
             "such a server takes, or might take, the fraction from a variable, a shell or a file, so that it is not "
             "certain",
             "make sure that it is at most the number that the message names"),
    warning_row({"SeveralReplicas"},
                "a container asks for more than one replica of shared GPUs: it gets neither more time nor more "
                "memory, and under MPS the plugin refuses it",
                "ask for 1"),
    warning_row({"SharedProductSelected"},
                "a container asks for `nvidia.com/gpu.shared`, and the pod selects nodes by a product that ends with "
                "`-SHARED`: under `renameByDefault` the label has no such suffix",
                "select the product without `-SHARED`"),
    warning_row({kSeveralSlices}, "a container asks for more than one MPS slice of nos", "ask for one larger slice"),
    warning_row(
        {kSliceWithoutHostIPC},
        "a slice of nos (`nvidia.com/gpu-10gb`) without `hostIPC: true`: the client cannot reach the MPS daemon",
        "set `hostIPC: true`"),
    warning_row(
        {kSliceOfAnotherUser},
        "a slice of nos in a container that runs as another user than its MPS daemon (an info if no user is set)",
        "set `runAsUser` to the daemon's user: 1000, or what the chart's `podMutation.nosUser` (the setting "
        "`mps-user`) "
        "says"),
    warning_row({"ThreadPercentageInvalid"}, "`CUDA_MPS_ACTIVE_THREAD_PERCENTAGE` is not a number from 0 to 100",
                "write a percentage"),
    warning_row(
        {"VisibleDevicesSet"},
        "`NVIDIA_VISIBLE_DEVICES=all` in a container that requests a GPU: it replaces what the device plugin sets, "
        "and the container can use every GPU of its node, unless the plugin assigns GPUs by volume mounts or CDI",
        "remove the variable"),
    warning_row({"PipeDirectoryMisspelt"}, "`/tmp/nvidia-smp`", "`/tmp/nvidia-mps`"),
    warning_row(
        {"PipeDirectoryNotMounted"},
        "the directory in which the client looks for the MPS daemon (`CUDA_MPS_PIPE_DIRECTORY`, or its driver's "
        "default, `/run/nvidia-mps` from r615 on, `/tmp/nvidia-mps` before) is not the one that the pod mounts: it "
        "runs without MPS, and no error says so (an info if that depends on the driver)",
        "let the variable name the directory that is mounted"),
    warning_row(
        {"PipeDirectoryCreated"},
        "a fraction pod of KAI mounts the daemon's directory with `type: DirectoryOrCreate`, as in KAI's guide: "
        "where there is no daemon, it gets an empty folder, and the whole GPU without MPS",
        "`type: Directory`, and a selector"),
    info_row({"NoPipeDirectory", "NoHostIPC", "NoDaemonSelector"},
             "a fraction pod of KAI that is meant for MPS could run without it",
             "mount the pipe directory, set `hostIPC`, select nodes that have a daemon"),
};

constexpr CodeRow kPolicyFields[] = {
    error_row({kSelectorOnSharingLabel},
              "`nodeSelector` uses a label that sharing or the operator itself changes "
              "(`nvidia.com/gpu.replicas`, `nvidia.com/gpu.sharing-strategy`, `nvidia.com/mps.capable`, …): each "
              "change would remove a node from the policy or add it again. The policy governs no node; with a "
              "stop (mode Observe or Approve, paused, windows) it keeps its nodes as they are",
              "select by a label that never changes, for example the label of a node pool"),
    error_row({"SelectorInvalid"},
              "the API server refuses the `nodeSelector`: a label or value that Kubernetes does not allow, or "
              "values that do not fit the operator; or it drops all that the `nodeSelector` has, and every node "
              "would be selected",
              "see the message"),
    warning_row({kSelectorOnGpuCount},
                "`nodeSelector` uses the number of GPUs, which changes when a GPU dies: the node leaves its policy",
                "select by a label that never changes, for example the label of a node pool"),
    warning_row({kSharedSuffixIgnored}, "products are compared without `-SHARED`, which sharing adds",
                "leave the suffix out"),
    error_row({"StrategyMissing"}, "`inline` without `strategy`", "name one"),
    warning_row({"WindowNeverOpens"}, "a maintenance window on a day that does not exist (31 February): it never opens",
                "correct its day or month"),
    error_row({"ProfileNotUnique"}, "not exactly one of `configMapKey` and `inline`", "keep one"),
    error_row({"UnknownValue"}, "not an allowed word", "use one that the message names"),
    error_row({"OutOfRange"}, "a number that is not allowed", "see the message"),
    error_row({"EvictNeedsCordon"}, "`workloads: Evict` with `cordon: false`", "drop `cordon: false`"),
    error_row({"DaemonSetRestartInterrupts", "DaemonSetRestartHasNoCanary", "DaemonSetRestartHasNoWindows",
               "DaemonSetRestartPauses"},
              "mechanism `DaemonSetRestart` cannot gate single nodes",
              "`workloads: Interrupt`, `canary.nodesPerGroup: 0`, no windows, `onFailure: Pause`"),
    error_row({"InvalidWindow"},
              "a maintenance window whose cron expression, duration or time zone cannot be read: it would never open",
              "see the message and [sharing-objects.md](sharing-objects.md)"),
    error_row({"NothingShared"}, "`strategy: none` with `replicas` or `renameByDefault`",
              "drop them, or name a strategy"),
    error_row({"MPSSharesGPUsOnly"}, "`strategy: mps` for a resource other than `nvidia.com/gpu`",
              "`strategy: time-slicing`, or `nvidia.com/gpu`"),
};

}  // namespace

std::vector<CodeSection> codes_checked() {
  constexpr auto kChecked = CodeSection::Kind::checked;
  return {{kChecked, "YAML", "", kYaml},
          {kChecked, "Profiles: what the parser refuses", "", kParser},
          {kChecked, "Profiles: what makes a component exit", "", kExits},
          {kChecked, "Profiles: what is silently ignored, or worth knowing", "", kIgnored},
          {kChecked,
           "The setup of a node",
           "Reported about the Node (once about the DaemonSet if many nodes are affected) by `lint` of manifests, "
           "by `plan`, and by the operator before it changes the node. If a code blocks a node, `explain` also "
           "shows the reason of the block.",
           {}},
          {kChecked, "ConfigMaps, ClusterPolicies and DaemonSets",
           "`plan` and the operator also report `NodesWouldBreak` about a Node that would lose its GPUs by a change of "
           "the ClusterPolicy that the DaemonSets do not have yet: correct it before the GPU Operator applies it.",
           kObjects},
          {kChecked, "Pods",
           "What concerns GPU sharing. `kubectl apply --dry-run=server` says what else the API server refuses.", kPods},
          {kChecked, "SharingPolicies", "", kPolicyFields}};
}

}  // namespace gso
