// The codes. Those of the checks are in chain.cc and object_checks.cc, the reasons of Blocked nodes in
// blocked_reasons.cc.
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

CodeSection yaml_section() {
  return {
      "YAML",
      "",
      {
          {{"SyntaxError"},
           error,
           "the plugin's YAML library cannot parse the text",
           "correct the line; an unclosed quote is reported where it opens, an unclosed bracket where the next token "
           "is missing; if either of two lines can be wrong (`mps: 4` with a value nested below it), each has an "
           "error"},
          {{"UnsupportedYAML"},
           error,
           "a form that the operator does not read, whatever the plugin makes of it: UTF-16, a byte order mark inside "
           "the text, comments in JSON, and inside `[]` and `{}` a `?` in a text without quotes, a `:` before a "
           "bracket or comma, a tag without a value",
           "see the message"},
          {{"UnknownAnchor"},
           error,
           "`*name` without an `&name` before it",
           "define the anchor, or write the value out"},
          {{"AliasContainsItself"}, error, "an anchor's value refers to itself", "write the value out"},
          {{"TooManyAliases"}, error, "aliases make up nearly all of the document", "write the values out"},
          {{"MergeNeedsMapping"},
           error,
           "`<<` with a value that is not a mapping",
           "give it a mapping, or a list of mappings"},
          {{"KeyNotScalar"}, error, "a list or mapping as a key", "use a string"},
          {{"KeyNotString"}, error, "null or a number beyond 63 bits as a key", "use a string"},
          {{"ValueContradictsTag"}, error, "`!!int four`", "correct the value, or leave the tag out"},
          {{"NumberNotFinite"}, error, "`.inf` or `.nan`, which JSON does not have", "write a number"},
          {{"TooDeep"}, error, "more than 500 levels", "flatten the document"},
          {{"TooLarge"},
           error,
           "more than 1 MiB under one key, or all keys, of a ConfigMap, or in a profile's file",
           "shorten it; a ConfigMap holds at most 1 MiB"},
          {{"DuplicateKey"}, warning, "a key appears twice; the last one is used", "remove one"},
          {{"MergeOverridesKey"}, warning, "a `<<` after a key overwrites it", "put `<<` first"},
          {{"FurtherDocumentIgnored", "FurtherTextIgnored"},
           warning,
           "only the first document of a profile is read",
           "remove the text after it, or make it a key of its own"},
      }};
}

CodeSection parser_section() {
  return {
      "Profiles: what the parser refuses",
      "",
      {
          {{"WrongType"},
           error,
           "a list instead of a mapping, a quoted number, …",
           "write the type that the message names"},
          {{"UnknownVersion"}, error, "`version` is not `v1`", "write `version: v1`"},
          {{"InvalidDuration"}, error, "not a Go duration", "write `60s`, `1h30m` or `infinite`"},
          {{"NoResources"}, error, "a section without entries", "add one; to disable sharing, leave the section out"},
          {{"NameMissing", "PatternMissing"}, error, "an entry lacks the field", "add it"},
          {{"NameInvalid"},
           error,
           "not a resource of `nvidia.com/`, or characters that are not allowed in its name",
           "use `nvidia.com/gpu` or `nvidia.com/mig-<profile>`"},
          {{"NameTooLong"}, error, "more than 63 characters with `nvidia.com/`", "shorten it"},
          {{"ReplicasMissing"}, error, "no `replicas`", "add it"},
          {{"ReplicasNotInteger"}, error, "4.5, or beyond 63 bits", "write a whole number"},
          {{"ReplicasBelowMinimum"}, error, "below 2", "write 2 or more; to disable sharing, leave the section out"},
          {{"DevicesInvalid"}, error, "not an allowed form of `devices`", "leave it out"},
      }};
}

CodeSection exit_section() {
  return {
      "Profiles: what makes a component exit",
      "",
      {
          {{"UnknownMigStrategy"}, error, "not `none`, `single` or `mixed`: plugin and GFD exit", "use one of them"},
          {{"UnknownDiscoveryStrategy"}, error, "not `auto`, `nvml` or `tegra`: the plugin exits", "use one of them"},
          {{"UnknownDeviceIDStrategy"}, error, "not `uuid` or `index`: the plugin exits", "use one of them"},
          {{"UnknownDeviceListStrategy"},
           error,
           "not `envvar`, `volume-mounts`, `cdi-annotations` or `cdi-cri`: the plugin exits",
           "use one or more of them"},
          {{"UnknownAllocationPolicy"}, error, "not `distributed` or `packed`: the plugin exits", "use one of them"},
          {{"InvalidImexChannels"}, error, "not `[]` or `[0]`: the plugin exits", "use one of them"},
          of_check("MPSWithMixedMIG"),
          of_check("MPSReplicasAboveMaximum"),
          of_check("MPSMatchesNothing"),
      }};
}

CodeSection ignored_section() {
  return {"Profiles: what is silently ignored, or worth knowing",
          "",
          {
              {{"UnknownField"},
               warning,
               "no such field; in a SharingPolicy or ClusterPolicy the API server drops it",
               "correct the name or the place that the message suggests"},
              {{"WrongCase"}, warning, "the name is case-sensitive", "write it as the message says"},
              {{"UnusualCase"}, info, "accepted in spite of its upper and lower case", "write it in the usual case"},
              {{"DuplicateEntry"},
               warning,
               "two entries for one resource: GFD uses the first, the plugin uses the largest",
               "keep one"},
              of_check("NameMatchesNothing"),
              {{"RenameIgnored"}, warning, "`rename` is not supported", "use `renameByDefault: true`"},
              {{"DevicesIgnored"}, warning, "`devices` is not supported", "leave it out: all GPUs are shared"},
              {{"ResourcesIgnored"}, warning, "custom `resources` are not supported", "leave them out"},
              {{"TimeSlicingIgnored"}, warning, "both sections are set: only `mps` is used", "remove one"},
              {{"DurationWithoutUnit"}, warning, "a number without a unit means nanoseconds", "add a unit"},
              {{"ReplicasBeyondReason"},
               warning,
               "the device list would be too long for the kubelet",
               "use fewer replicas"},
              {{"EmptySection"}, info, "`mps:` without a value means no MPS", "remove it"},
              {{"MPSWithSingleMIG"}, info, "works only where no GPU has MIG enabled", "check the nodes"},
              {{"MPSReplicasNeedTuring"}, info, "more than 16 replicas need compute capability 7.5", "check the nodes"},
              {{"FailRequestsByVersion"},
               info,
               "`failRequestsGreaterThanOne: false` under MPS is honoured from v0.20.0 on",
               "upgrade the plugin"},
              {{"NothingWritten"},
               info,
               "the file is empty or has only comments; the plugin treats that as a profile without sharing",
               "no action needed if the nodes must not share GPUs"},
              {{kPartitionedByNos},
               info,
               "not checked: according to the Nodes and DaemonSets in the input, nos wrote this profile for its own "
               "device plugin",
               "no action needed"},
              {{"MoreNotShown"},
               info,
               "more than 100 errors or 100 other diagnostics in a document",
               "correct the diagnostics that are shown"},
              {{"NotChecked"}, info, "a kind that lint does not check", "no action needed"},
          }};
}

CodeSection chain_section() {
  return {kOfTheChain,
          "Reported about the Node (once about the DaemonSet if many nodes are affected) by `lint` of manifests, by "
          "`plan`, and by the operator before it changes the node. If a code blocks a node, `explain` also shows the "
          "reason of the block.",
          {}};
}

CodeSection objects_section() {
  return {
      kOfObjects,
      "`plan` and the operator also report `NodesWouldBreak` about a Node that would lose its GPUs by a change of the "
      "ClusterPolicy that the DaemonSets do not have yet: correct it before the GPU Operator applies it.",
      {
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
std::vector<CodeEntry> kai_pod_entries() {
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
std::vector<CodeEntry> mps_client_entries() {
  return {
      {{kMemoryFractionAboveSlice},
       warning,
       "vLLM, SGLang or TensorRT-LLM reserves a fraction of the whole GPU, and MPS gives each client only "
       "1/replicas of "
       "its memory",
       "set the flag to the number that the message names"},
      {{kMemoryFractionUnknown},
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
  std::ranges::move(mps_client_entries(), std::back_inserter(out.entries));
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

std::vector<CodeSection> sections() {
  return {yaml_section(),  parser_section(),  exit_section(), ignored_section(),
          chain_section(), objects_section(), pods_section(), policies_section()};
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

std::string_view meaning_of(std::string_view code_or_reason) {
  if (const CodeEntry* entry = find_code(code_or_reason)) return entry->meaning;
  const auto reason = std::ranges::find(blocked_reasons(), code_or_reason, &BlockedReason::reason);
  return reason == blocked_reasons().end() ? std::string_view() : reason->meaning;
}

std::string_view remedy_of(std::string_view code_or_reason) {
  if (const CodeEntry* entry = find_code(code_or_reason)) return entry->remedy;
  const auto reason = std::ranges::find(blocked_reasons(), code_or_reason, &BlockedReason::reason);
  return reason == blocked_reasons().end() ? std::string_view() : reason->remedy;
}

}  // namespace gso
