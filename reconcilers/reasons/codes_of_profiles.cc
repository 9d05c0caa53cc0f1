// The codes of profiles: what the parser refuses, what makes a component exit, what is silently ignored.
#include "reconcilers/reasons/codes.h"

#include "reconcilers/reasons/names.h"

namespace gso {
namespace {

using enum Severity;

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
          {{"MPSWithMixedMIG"}},
          {{"MPSReplicasAboveMaximum"}},
          {{"MPSMatchesNothing"}},
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
              {{"NameMatchesNothing"}},
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

}  // namespace

std::vector<CodeSection> codes_of_profiles() {
  return {yaml_section(), parser_section(), exit_section(), ignored_section()};
}

}  // namespace gso
