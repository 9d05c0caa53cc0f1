// The checks of single Kubernetes objects: policy.cc, selector.cc, config_map.cc.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/lint/lint.h"
#include "reconcilers/profile/document_value.h"

namespace gso {

// A SharingPolicy, field by field.
void check_policy(const DocumentValue& policy, std::vector<Diagnostic>& diagnostics);

// Its spec.nodeSelector, a mapping. `own_key`: the key that the policy's nodes get as their label; empty: it chooses
// none. `path`: of the selector.
void check_selector(const DocumentValue& selector, const std::string& own_key, std::string& path,
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

// A ConfigMap with profiles, apart from the profiles themselves: keys that no node label can name.
void check_config_map(const DocumentValue& config_map, std::vector<Diagnostic>& diagnostics);

// A part of the operator's own record, whose JSON also reads like a profile.
[[nodiscard]] bool is_record(const DocumentValue& config_map);

// True when some value of the ConfigMap reads like a profile.
[[nodiscard]] bool holds_profiles(const DocumentValue& config_map);

}  // namespace gso
