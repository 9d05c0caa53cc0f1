// The checks of single Kubernetes objects: policy.cc, selector.cc, cluster_policy.cc, config_map.cc, pods.cc,
// extended_resources.cc, misspelt.cc.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/lint/lint.h"
#include "reconcilers/profile/document_value.h"

namespace gso {

// A SharingPolicy, field by field. Returns LintedDocument::left_to_operator.
[[nodiscard]] std::size_t check_policy(const DocumentValue& policy, std::vector<Diagnostic>& diagnostics);

// Its spec.nodeSelector, a mapping. `own_key`: the key that the policy's nodes get as their label; empty: it chooses
// none. `path`: of the selector. Returns what check_policy() does.
[[nodiscard]] std::size_t check_selector(const DocumentValue& selector, const std::string& own_key, std::string& path,
                                         std::vector<Diagnostic>& diagnostics);

// The fields below a SharingPolicy's spec that lint knows, as paths: "rollout.canary.soak".
[[nodiscard]] std::span<const std::string_view> policy_fields();

// One key of a ConfigMap. The kubelet makes a file of each, those of binaryData too.
struct ConfigMapEntry {
  const DocumentMember* member = nullptr;
  bool binary = false;   // Of binaryData.
  bool readable = true;  // False: its base64 cannot be decoded.
  std::string text;      // What is in the file.
};

// data's, then binaryData's.
[[nodiscard]] std::vector<ConfigMapEntry> entries_of(const DocumentValue& config_map);

// A ConfigMap apart from its metadata and its profiles: what the API server refuses and, if it has profiles, keys that
// no node label can name.
void check_config_map(const DocumentValue& config_map, bool has_profiles, std::vector<Diagnostic>& diagnostics);

// A part of the operator's own record, whose JSON also reads like a profile.
[[nodiscard]] bool is_record(const DocumentValue& config_map);

// The pods of a workload.
struct PodTemplate {
  const DocumentValue* pod = nullptr;  // With metadata and spec, as a Pod has them.
  std::string path;                    // What comes before the paths within it: "spec.template."
};
// Of a Deployment, StatefulSet, DaemonSet, Job, CronJob, and of any other object that has templates of pods. The
// pointers are into `object`.
[[nodiscard]] std::vector<PodTemplate> pod_templates(const DocumentValue& object);

// A Pod, or the template of pods that stands at `path`: KAI's rules (check_pod), and those of pods.cc.
void check_pod_at(const DocumentValue& pod, const std::string& path, const KaiPodRules& rules,
                  std::vector<Diagnostic>& diagnostics);

// What a container of a Pod, which stands at `path`, requests of extended resources.
void check_extended_resources(const DocumentValue& container, const std::string& path,
                              std::vector<Diagnostic>& diagnostics);

// lint_kai() or lint_pods() can say more about the Pod if other objects are among the input.
[[nodiscard]] bool needs_other_objects(const DocumentValue& pod);
// A Pod with an inference server that reserves a fraction of the GPU.
[[nodiscard]] bool reserves_memory(const DocumentValue& pod);
// A Pod one of whose containers asks for more than one GPU.
[[nodiscard]] bool asks_for_several(const DocumentValue& pod);
// The spec of a Pod: its nodeSelector names nodes whose GPUs are shared by MPS.
[[nodiscard]] bool selects_mps(const DocumentValue& spec);

// The fields of a ClusterPolicy that choose the plugin's ConfigMap and default key.
void check_cluster_policy(const DocumentValue& policy, std::vector<Diagnostic>& diagnostics);

// A Node's labels and annotations that look like one that a component reads.
void check_node(const DocumentValue& node, std::vector<Diagnostic>& diagnostics);

// True when some value of the ConfigMap reads like a profile.
[[nodiscard]] bool holds_profiles(const DocumentValue& config_map);

}  // namespace gso
