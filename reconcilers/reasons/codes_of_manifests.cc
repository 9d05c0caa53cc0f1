// The codes of manifests beside profiles: ConfigMaps, Helm values, pods, SharingPolicies.
#include "reconcilers/reasons/codes.h"

#include <algorithm>
#include <iterator>

#include "reconcilers/reasons/names.h"

namespace gso {
namespace {

using enum Severity;

CodeSection objects_section() {
  return {
      "ConfigMaps, ClusterPolicies and DaemonSets",
      "`plan` and the operator also report `NodesWouldBreak` about a Node that would lose its GPUs by a change of the "
      "ClusterPolicy that the DaemonSets do not have yet: correct it before the GPU Operator applies it.",
      {
          {{"SettingInvalid"}},
          {{"ConfigMapMissing"}},
          {{"ConfigMapInWrongNamespace"}},
          {{"ConfigMapNameNoVolume"}},
          {{"ConfigMapNameCollides"}},
          {{"NoProfiles"}},
          {{"KeyNoLabelValue"}},
          {{"KindMissing"}, error, "an object without a kind", "write its kind"},
          {{"BinaryDataInvalid"},
           error,
           "a value of `binaryData` that the API server refuses",
           "encode it, or write the profile under `data`"},
          {{"KeyRefused"},
           error,
           "a key that no ConfigMap can have, as the API server says: a slash, a space, `..` at the front, more than "
           "253 characters",
           "rename it"},
          {{"KeyTwice"}, error, "a key is in `data` and in `binaryData`, which the API server refuses", "keep one"},
          {{"HelmValues"},
           info,
           "Helm values with profiles, of the device plugin's chart (`config.map`) or the GPU Operator's "
           "(`devicePlugin.config.data`), in a values file, a HelmRelease or an Application: these are checked, and no "
           "other value",
           "no action needed"},
          {{"HelmValuesRefused"},
           error,
           "`config.name` and `config.map` in the values of the device plugin's chart, which refuses both together",
           "remove one"},
          {{"HelmValuesIncomplete"},
           warning,
           "the default of such values names a key that they do not have, or profiles for the GPU Operator's chart "
           "stand in values without `create: true`, which it ignores",
           "correct it, unless another values file or `--set` adds what is missing"},
          {{"NameNoVolumeName"},
           info,
           "the same as `ConfigMapNameNoVolume`, if no ClusterPolicy is known",
           "rename it"},
      }};
}

// What KAI's admission or the API server refuses, and what neither notices.
std::vector<CodeRow> kai_pod_entries() {
  return {
      {{"KAICannotPlace"},
       error,
       "KAI cannot place the pod with the Nodes, kai-config and RuntimeClasses in the input: too much memory or "
       "too many devices, no `nvidia.com/gpu.memory` label, a missing RuntimeClass, an unscheduled scaling pod",
       "see the message"},
      {{"KAIReservationWithoutToleration"},
       error,
       "a Node in the input has a NoExecute taint that the pod tolerates and KAI's reservation does not",
       "keep the pod off that node, or upgrade KAI"},
      {{"KAISharingDisabled"},
       error,
       "a fraction is requested and KAI's GPU sharing is off",
       "enable it, or request whole GPUs"},
      {{"MPSWithoutFraction"}, error, "`mps: \"true\"` without a fraction or memory", "add one"},
      {{"FractionWithWholeGPU"}, error, "a fraction and a limit of `nvidia.com/gpu`", "remove one"},
      {{"MemoryWithOtherRequest"}, error, "`gpu-memory` and a fraction or limit", "remove one"},
      {{"DevicesWithoutFraction"}, error, "`gpu-fraction-num-devices` alone", "add a fraction or memory"},
      {{"GPUMemoryInvalid"},
       error,
       "not a whole number of MiB above 0 that the binder can read",
       "write MiB without a unit"},
      {{"GPUFractionInvalid"}, error, "not above 0 and below 1", "write `\"0.5\"`"},
      {{"NumDevicesInvalid"}, error, "not a whole number of 1 or more", "write one"},
      {{"ContainerNotFound"}, error, "no container of that name", "correct the name"},
      {{"ResourceNotWhole"},
       error,
       "a fraction, a negative number or a word as the amount of GPUs, which the API server refuses: "
       "`nvidia.com/gpu: 500m`",
       "write a whole number; for a share of a GPU use a profile or KAI's annotations"},
      {{"RequestUnlikeLimit"},
       error,
       "a request of GPUs that differs from its limit, or has no limit, which the API server refuses",
       "write the limit alone"},
      {{"AnnotationNoString", "LabelNoString", "SelectorNoString"},
       error,
       "the value is not a string, which the API server refuses: `nvidia.mps/enabled: true`",
       "put it in quotes"},
      {{"AnnotationMisspelt", "LabelMisspelt"},
       warning,
       "a name that nothing reads and that looks like one of KAI's, of nos' or of the operator's: `gpu_fraction`, "
       "`gpu-fraction` as a label, `nvidia.com/device-plugin-config`",
       "write the name that the message has"},
      {{"ResourceMisspelt"},
       warning,
       "a limit or request of a resource that no device plugin offers: `nvidia.com/gpus`; the pod stays Pending",
       "write the name that the message has"},
      {{"NvFractionInvalid"},
       warning,
       "a value of KAI's mode NvFractions that it does not accept, a container that the pod does not have, or an "
       "annotation that its binder writes",
       "see the message"},
      {{"AnnotationIgnored"}, warning, "the annotation has no effect there", "remove it"},
      {{"FractionWithOtherGPUResource"},
       warning,
       "a fraction together with another GPU resource gives the pod two GPUs",
       "use one of the two"},
  };
}

// What a client of MPS, or of a slice of nos, would miss.
std::vector<CodeRow> mps_client_entries() {
  return {
      {{"MemoryFractionAboveSlice"},
       warning,
       "vLLM, SGLang or TensorRT-LLM reserves a fraction of the whole GPU, and MPS gives each client only "
       "1/replicas of "
       "its memory",
       "set the flag to the number that the message names"},
      {{"MemoryFractionUnknown"},
       info,
       "such a server takes, or might take, the fraction from a variable, a shell or a file, so that it is not certain",
       "make sure that it is at most the number that the message names"},
      {{"SeveralReplicas"},
       warning,
       "a container asks for more than one replica of shared GPUs: it gets neither more time nor more memory, and "
       "under MPS the plugin refuses it",
       "ask for 1"},
      {{"SeveralSlices"}, warning, "a container asks for more than one MPS slice of nos", "ask for one larger slice"},
      {{"SliceWithoutHostIPC"},
       warning,
       "a slice of nos (`nvidia.com/gpu-10gb`) without `hostIPC: true`: the client cannot reach the MPS daemon",
       "set `hostIPC: true`"},
      {{"SliceOfAnotherUser"},
       warning,
       "a slice of nos in a container that runs as another user than its MPS daemon (an info if no user is set)",
       "set `runAsUser` to the daemon's user, 1000 unless its chart says otherwise"},
      {{"ThreadPercentageInvalid"},
       warning,
       "`CUDA_MPS_ACTIVE_THREAD_PERCENTAGE` is no number from 0 to 100",
       "write a percentage"},
      {{"VisibleDevicesSet"},
       warning,
       "`NVIDIA_VISIBLE_DEVICES=all` in a container that requests a GPU: it replaces what the device plugin sets, and "
       "the container can use every GPU of its node, unless the plugin assigns GPUs by volume mounts or CDI",
       "remove the variable"},
      {{"PipeDirectoryMisspelt"}, warning, "`/tmp/nvidia-smp`", "`/tmp/nvidia-mps`"},
      {{"PipeDirectoryNotMounted"},
       warning,
       "the directory in which the client looks for the MPS daemon (`CUDA_MPS_PIPE_DIRECTORY`, or "
       "`/tmp/nvidia-mps`) is "
       "not the one that the pod mounts: it runs without MPS, and no error says so",
       "mount the directory that the variable names"},
      {{"NoPipeDirectory", "NoHostIPC"},
       info,
       "the pod would run without using MPS",
       "mount the pipe directory, set `hostIPC`"},
  };
}

CodeSection pods_section() {
  CodeSection out{"Pods",
                  "What concerns GPU sharing. `kubectl apply --dry-run=server` says what else the API server refuses.",
                  kai_pod_entries()};
  std::ranges::move(mps_client_entries(), std::back_inserter(out.rows));
  return out;
}

CodeSection policies_section() {
  return {
      "SharingPolicies",
      "",
      {
          {{kSelectorOnSharingLabel},
           error,
           "`nodeSelector` uses a label that sharing or the operator itself changes (`nvidia.com/gpu.replicas`, "
           "`nvidia.com/gpu.sharing-strategy`, `nvidia.com/mps.capable`, …): each change would remove a node from the "
           "policy or add it again. The policy governs no node; with a stop (mode Observe or Approve, paused, "
           "windows) it "
           "keeps its nodes as they are",
           "select by a label that never changes, for example the label of a node pool"},
          {{"SelectorInvalid"},
           error,
           "the API server refuses the `nodeSelector`: a label or value that Kubernetes does not allow, or values "
           "that do not fit the operator; or it drops all that the `nodeSelector` has, and every node would be "
           "selected",
           "see the message"},
          {{kSelectorOnGpuCount},
           warning,
           "`nodeSelector` uses the number of GPUs, which changes when a GPU dies: the node leaves its policy",
           "select by a label that never changes, for example the label of a node pool"},
          {{kSharedSuffixIgnored},
           warning,
           "products are compared without `-SHARED`, which sharing adds",
           "leave the suffix out"},
          {{"StrategyMissing"}, error, "`inline` without `strategy`", "name one"},
          {{"WindowNeverOpens"},
           warning,
           "a maintenance window on a day that does not exist (31 February): it never opens",
           "correct its day or month"},
          {{"ProfileNotUnique"}, error, "not exactly one of `configMapKey` and `inline`", "keep one"},
          {{"UnknownValue"}, error, "not an allowed word", "use one that the message names"},
          {{"OutOfRange"}, error, "a number that is not allowed", "see the message"},
          {{"EvictNeedsCordon"}, error, "`workloads: Evict` with `cordon: false`", "drop `cordon: false`"},
          {{"DaemonSetRestartInterrupts", "DaemonSetRestartHasNoCanary", "DaemonSetRestartHasNoWindows",
            "DaemonSetRestartPauses"},
           error,
           "mechanism `DaemonSetRestart` cannot gate single nodes",
           "`workloads: Interrupt`, `canary.nodesPerGroup: 0`, no windows, `onFailure: Pause`"},
          {{"InvalidWindow"},
           error,
           "a maintenance window whose cron expression, duration or time zone cannot be read: it would never open",
           "see the message and [sharing-objects.md](sharing-objects.md)"},
          {{"NothingShared"},
           error,
           "`strategy: none` with `replicas` or `renameByDefault`",
           "drop them, or name a strategy"},
          {{"MPSSharesGPUsOnly"},
           error,
           "`strategy: mps` for a resource other than `nvidia.com/gpu`",
           "`strategy: time-slicing`, or `nvidia.com/gpu`"},
      }};
}

}  // namespace

std::vector<CodeSection> codes_of_manifests() {
  return {objects_section(), pods_section(), policies_section()};
}

}  // namespace gso
