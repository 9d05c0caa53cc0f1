// What the API server refuses of the objects that lint reads, whatever they are for: their metadata, and the pods that
// they describe. object_rules.cc has one row for each kind.
// Source: kubernetes/kubernetes v1.36, pkg/apis/{core,apps,batch}/validation, and
// k8s.io/apimachinery/pkg/api/validation. Older API servers store a StatefulSet whose pods they then refuse to create.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/profile/document_value.h"
#include "reconcilers/profile/profile.h"

namespace gso {

struct ObjectRules {
  std::string_view kind;
  bool namespaced = true;
  std::size_t longest_name = 253;
  std::span<const std::string_view> pods_at = {};         // Path of its template of pods: "spec", "template".
  std::span<const std::string_view> restart_policy = {};  // What its pods can have; not empty if it describes pods.
  std::span<const std::string_view> counts = {};  // Fields beside the template that the API server refuses below 0.
  bool needs_selector = false;                    // spec.selector, which must fit the labels of the template.
  bool name_is_label = false;                     // Without a '.': its pods get it as their host name.
};

// Null: lint does not know the kind, or it says nothing about it here.
[[nodiscard]] const ObjectRules* find_object_rules(std::string_view kind);

// Of an object of such a kind, apart from what its kind alone has: metadata.
void check_metadata(const DocumentValue& object, const ObjectRules& rules, std::vector<Diagnostic>& diagnostics);

// Labels and annotations of the template of pods whose metadata stands at `path`.
void check_template_metadata(const DocumentValue& metadata, std::string path, std::vector<Diagnostic>& diagnostics);

// The pods of an object: the Pod itself, or what a workload makes. Also the selector of a workload.
void check_described_pods(const DocumentValue& object, const ObjectRules& rules, std::vector<Diagnostic>& diagnostics);

// A Pod, or the template that stands at `path` of a workload: what ends in its spec.
void check_pod_spec(const DocumentValue& pod, std::string path, const ObjectRules& rules,
                    const DocumentValue* claim_templates, std::vector<Diagnostic>& diagnostics);

// Fields of `value` that are one of `fields` but for the case of letters: the API server drops them.
void check_case_of_fields(const DocumentValue& value, std::span<const std::string_view> fields, const std::string& path,
                          std::vector<Diagnostic>& diagnostics);

}  // namespace gso
