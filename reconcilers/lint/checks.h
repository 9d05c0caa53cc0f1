// The checks of single documents, one file for each: policy.cc, config_map.cc, pods.cc,
// pods_beside_objects.cc, misspelt.cc. What the API server refuses of any object, `kubectl apply --dry-run=server`
// says.
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/lint/lint.h"
#include "reconcilers/profile/document_value.h"

namespace gso {

// The parts of a list or mapping that may be absent.
[[nodiscard]] inline std::span<const DocumentValue> items_of(const DocumentValue* list) {
  return list == nullptr ? std::span<const DocumentValue>() : std::span(list->items);
}
[[nodiscard]] inline std::span<const DocumentMember> members_of(const DocumentValue* mapping) {
  return mapping == nullptr ? std::span<const DocumentMember>() : std::span(mapping->members);
}

// A SharingPolicy, field by field. Returns LintedDocument::left_to_operator.
[[nodiscard]] std::size_t check_policy(const DocumentValue& policy, std::vector<Diagnostic>& diagnostics);

// One key of a ConfigMap. The kubelet makes a file of each, those of binaryData too.
struct ConfigMapEntry {
  const DocumentMember* member = nullptr;
  bool binary = false;   // Of binaryData.
  bool readable = true;  // False: its base64 cannot be decoded.
  std::string text;      // What is in the file.
};

// data's, then binaryData's.
[[nodiscard]] std::vector<ConfigMapEntry> entries_of(const DocumentValue& config_map);

// A ConfigMap with profiles, apart from these: keys that no ConfigMap can have, and those that no node label can name.
void check_config_map(const DocumentValue& config_map, std::vector<Diagnostic>& diagnostics);

// A part of the operator's own record, whose JSON also reads like a profile.
[[nodiscard]] bool is_record(const DocumentValue& config_map);

// True when some value of the ConfigMap reads like a profile.
[[nodiscard]] bool holds_profiles(const DocumentValue& config_map);

// Profiles in the values of a Helm chart. Two charts make the plugin's ConfigMap of their values: that of the device
// plugin (config.map) and that of the GPU Operator (devicePlugin.config.data), each also below the name of a subchart.
// The latter's values can also name a ConfigMap that somebody else makes.
struct ChartProfiles {
  std::string path;                       // Of the mapping from keys to profiles: "config.map".
  std::string config_map_name;            // Empty: the chart takes it from the release.
  DocumentValue config_map;               // With the mapping as its data.
  const DocumentValue* config = nullptr;  // devicePlugin.config without profiles, into the document; null: it has some.
  std::vector<Diagnostic> diagnostics;    // About the values; an info says what is checked.
};
// Of a values file. Empty: it has no such values.
[[nodiscard]] std::vector<ChartProfiles> chart_profiles(const DocumentValue& document);
// Of an object that installs a chart with values: Flux' HelmRelease, Argo CD's Application.
[[nodiscard]] std::vector<ChartProfiles> release_profiles(const DocumentValue& object);

// Labels, annotations and selectors of an object whose values are no strings: `true` and `4` without quotes.
// `reported`: paths about which something has been said already.
void check_strings(const DocumentValue& object, const std::set<std::string>& reported,
                   std::vector<Diagnostic>& diagnostics);

// A Pod, or the template of pods that stands at `path`: KAI's rules (check_pod), and those of pods.cc.
void check_pod_at(const DocumentValue& pod, const std::string& path, const PodRules& rules,
                  std::vector<Diagnostic>& diagnostics);

// lint_kai() or lint_pods() can say more about the Pod if other objects are among the input.
[[nodiscard]] bool needs_other_objects(const DocumentValue& pod);
// The spec of a Pod: its nodeSelector names nodes whose GPUs are shared by MPS.
[[nodiscard]] bool selects_mps(const DocumentValue& spec);

// KAI's annotations in a Pod's metadata, misspelt or written as labels, and the values of those of the mode
// NvFractions, with the containers of `spec` that they name; and labels of nodes with MPS daemons, misspelt in `spec`.
void check_misspelt_metadata(const DocumentValue& metadata, const DocumentValue& spec, std::vector<Diagnostic>& found);
// The labels and annotations of a Node: the label that chooses its profile, nos' label, the operator's switches.
void check_misspelt_labels_of_node(const DocumentValue& metadata, std::vector<Diagnostic>& found);
// The fields of a ClusterPolicy that choose the plugin's ConfigMap and default key. The API server drops a misspelt
// one, and the operator then sees a ClusterPolicy that chooses nothing.
void check_cluster_policy(const DocumentValue& policy, std::vector<Diagnostic>& diagnostics);
// Warns of the member that stands at `path` and is none of the `fields` there: the API server drops it.
void report_unknown_field(const DocumentMember& member, const std::string& path,
                          std::span<const std::string_view> fields, std::vector<Diagnostic>& found);

}  // namespace gso
