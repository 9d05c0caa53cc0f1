// See policy_match.h.
#include "reconcilers/cluster/policy_match.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "reconcilers/cluster/profile_cache.h"
#include "reconcilers/model/labels.h"

namespace gso {
namespace {

using k8s::LabelOperator;
using k8s::LabelRequirement;

constexpr std::string_view kVendor = "nvidia.com/";

std::optional<std::string_view> value_of(const Node& node, std::string_view label) {
  const auto value = node.meta.labels.get(label);
  return value && is_product_label(label) ? std::optional(unshared_product(*value)) : value;
}

bool same_value(std::string_view label, std::string_view wanted, std::string_view actual) {
  return (is_product_label(label) ? unshared_product(wanted) : wanted) == actual;
}

bool matches(const LabelRequirement& requirement, const Node& node) {
  const auto value = value_of(node, requirement.key);
  const bool listed = value && std::ranges::any_of(requirement.values, [&](const std::string& wanted) {
                        return same_value(requirement.key, wanted, *value);
                      });
  switch (requirement.op) {
    case LabelOperator::in:
      return listed;
    case LabelOperator::not_in:
      return !listed;
    case LabelOperator::exists:
      return value.has_value();
    case LabelOperator::does_not_exist:
      return !value.has_value();
  }
  return false;
}

// GPU Feature Discovery, Node Feature Discovery or the GPU Operator writes the label, from what they find on the node.
// (People and the operator write the plugin's node label.)
bool is_discovered(std::string_view label) {
  return (label.starts_with(kVendor) && label != kConfigLabel) || label.starts_with(kFeaturePrefix);
}

// What is known while discovered labels are missing.
enum class Selection { no, unknown, yes };

Selection selection_of(const SharingPolicy& policy, const Node& node) {
  const k8s::LabelSelector& selector = policy.node_selector;
  if (!selector.empty() && !selector_problem(policy).empty()) return Selection::no;
  bool certain = true;
  const auto is_missing = [&](std::string_view label) {
    const bool missing = is_discovered(label) && !node.meta.labels.contains(label);
    certain = certain && !missing;
    return missing;
  };
  const bool selected = std::ranges::all_of(selector.match_labels,
                                            [&](const auto& entry) {
                                              if (is_missing(entry.first)) return true;
                                              const auto value = value_of(node, entry.first);
                                              return value && same_value(entry.first, entry.second, *value);
                                            }) &&
                        std::ranges::all_of(selector.match_expressions, [&](const LabelRequirement& requirement) {
                          return is_missing(requirement.key) || matches(requirement, node);
                        });
  if (!selected) return Selection::no;
  return certain ? Selection::yes : Selection::unknown;
}

// The key that the policy writes as its nodes' label.
std::string own_key(const SharingPolicy& policy) {
  if (policy.config_map_key) return *policy.config_map_key;
  return policy.inline_profile ? inline_profile_key(policy.meta.name, *policy.inline_profile) : std::string();
}

}  // namespace

std::string_view unshared_product(std::string_view product) {
  constexpr std::string_view kShared = "-SHARED";
  if (product.ends_with(kShared)) product.remove_suffix(kShared.size());
  return product;
}

bool is_product_label(std::string_view label) {
  return label.starts_with(kVendor) && label.ends_with(".product");
}

std::string sharing_label_problem(std::string_view label, const std::vector<std::string>& values,
                                  std::string_view own_key) {
  const bool of_sharing = label.starts_with(kVendor) && (label.ends_with(".replicas") ||
                                                         label.ends_with(".sharing-strategy") || label == kMpsCapable);
  const bool of_operator = label == kStateLabel || label == kMpsEnabled || label == kMpsPipeDirectory;
  // The policy writes this label: its selector can use it only with exactly the value that the policy writes.
  const bool chooses = label == kConfigLabel && !own_key.empty() && !(values.size() == 1 && values.front() == own_key);
  if (!of_sharing && !of_operator && !chooses) return {};
  return fmt::format(
      "spec.nodeSelector uses the label {}, which {} changes: each change would remove the node from the policy or add "
      "it again. Select by a label that never changes, for example the label of a node pool",
      label, of_sharing ? "sharing itself" : "the operator itself");
}

std::string selector_problem(const SharingPolicy& policy) {
  const std::string key = own_key(policy);
  for (const auto& [label, value] : policy.node_selector.match_labels) {
    if (std::string problem = sharing_label_problem(label, {value}, key); !problem.empty()) return problem;
  }
  for (const LabelRequirement& requirement : policy.node_selector.match_expressions) {
    const bool asks_for_values = requirement.op == LabelOperator::in;
    std::string problem =
        sharing_label_problem(requirement.key, asks_for_values ? requirement.values : std::vector<std::string>(), key);
    if (!problem.empty()) return problem;
  }
  return {};
}

std::vector<SelectorNote> selector_notes(std::string_view label, k8s::LabelOperator op,
                                         const std::vector<std::string>& values) {
  std::vector<SelectorNote> out;
  const bool compares = op == LabelOperator::in || op == LabelOperator::not_in;
  if (compares && label.starts_with(kVendor) && label.ends_with(".count")) {
    out.push_back(
        {kSelectorOnGpuCount,
         fmt::format("spec.nodeSelector uses the label {}, which changes when a GPU of the node dies: the node "
                     "then leaves or joins the policy, and another policy can restart its pods. Select by a "
                     "label that never changes, for example the label of a node pool",
                     label)});
  }
  for (const std::string& value : values) {
    if (!is_product_label(label) || unshared_product(value) == value) continue;
    out.push_back({kSharedSuffixIgnored,
                   fmt::format("products are compared without -SHARED, which sharing adds to {}: write \"{}\"", label,
                               unshared_product(value))});
  }
  return out;
}

std::vector<SelectorNote> selector_notes(const SharingPolicy& policy) {
  std::vector<SelectorNote> out;
  for (const auto& [label, value] : policy.node_selector.match_labels) {
    std::ranges::move(selector_notes(label, LabelOperator::in, {value}), std::back_inserter(out));
  }
  for (const LabelRequirement& requirement : policy.node_selector.match_expressions) {
    std::ranges::move(selector_notes(requirement.key, requirement.op, requirement.values), std::back_inserter(out));
  }
  return out;
}

bool policy_selects(const SharingPolicy& policy, const Node& node) {
  const k8s::LabelSelector& selector = policy.node_selector;
  const bool selected = std::ranges::all_of(selector.match_labels,
                                            [&](const auto& entry) {
                                              const auto value = value_of(node, entry.first);
                                              return value && same_value(entry.first, entry.second, *value);
                                            }) &&
                        std::ranges::all_of(selector.match_expressions, [&](const LabelRequirement& requirement) {
                          return matches(requirement, node);
                        });
  return selected && (selector.empty() || has_stop(policy) || selector_problem(policy).empty());
}

const SharingPolicy* governing_policy(const std::vector<const SharingPolicy*>& policies, const Node& node) {
  const auto is_lifted = [&](const SharingPolicy& gone) {
    return std::ranges::any_of(policies, [&](const SharingPolicy* other) {
      const std::string uid = other->meta.uid.str();
      const bool later =
          !other->gone && !uid.empty() && std::ranges::find(gone.gone->beside, uid) == gone.gone->beside.end();
      return later && other->priority >= gone.priority && policy_selects(*other, node);
    });
  };
  const auto it = std::ranges::find_if(policies, [&](const SharingPolicy* policy) {
    return policy_selects(*policy, node) && !(policy->gone && is_lifted(*policy));
  });
  return it == policies.end() ? nullptr : *it;
}

std::vector<const SharingPolicy*> policies_in_doubt(const std::vector<const SharingPolicy*>& policies,
                                                    const Node& node) {
  std::vector<const SharingPolicy*> out;
  for (const SharingPolicy* policy : policies) {
    const Selection selection = selection_of(*policy, node);
    if (selection == Selection::unknown) out.push_back(policy);
    // A policy created later can lift a deleted one.
    if (selection == Selection::yes && !policy->gone) break;
  }
  return out;
}

std::vector<const SharingPolicy*> losing_policies(const std::vector<const SharingPolicy*>& policies, const Node& node,
                                                  const SharingPolicy* governing) {
  std::vector<const SharingPolicy*> out;
  std::ranges::copy_if(policies, std::back_inserter(out), [&](const SharingPolicy* policy) {
    return policy != governing && policy->meta.name != kDefaultPolicy && policy_selects(*policy, node);
  });
  return out;
}

}  // namespace gso
