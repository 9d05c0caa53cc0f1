#include "reconcilers/cluster/policy_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/reasons/names.h"

namespace gso {

namespace {

using k8s::LabelOperator;
using k8s::LabelRequirement;

constexpr std::string_view kVendor = "nvidia.com/";

// nvidia.com/gpu.product, nvidia.com/mig-1g.5gb.product, …
bool is_product_label(std::string_view label) {
  return label.starts_with(kVendor) && label.ends_with(".product");
}

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
  const bool positive = requirement.op == LabelOperator::in || requirement.op == LabelOperator::exists;
  const bool by_value = requirement.op == LabelOperator::in || requirement.op == LabelOperator::not_in;
  return (by_value ? listed : value.has_value()) == positive;
}

// `counts_as_matched`: of labels whose requirement is not looked at.
template <class Label>
bool matches(const k8s::LabelSelector& selector, const Node& node, Label counts_as_matched) {
  return std::ranges::all_of(selector.match_labels,
                             [&](const auto& entry) {
                               if (counts_as_matched(entry.first)) return true;
                               const auto value = value_of(node, entry.first);
                               return value && same_value(entry.first, entry.second, *value);
                             }) &&
         std::ranges::all_of(selector.match_expressions, [&](const LabelRequirement& requirement) {
           return counts_as_matched(requirement.key) || matches(requirement, node);
         });
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
  if (!matches(selector, node, is_missing)) return Selection::no;
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
  for (const auto& [label, value] : policy.node_selector.match_labels)
    if (std::string problem = sharing_label_problem(label, {value}, key); !problem.empty()) return problem;
  for (const LabelRequirement& requirement : policy.node_selector.match_expressions) {
    const bool asks_for_values = requirement.op == LabelOperator::in;
    std::string problem =
        sharing_label_problem(requirement.key, asks_for_values ? requirement.values : std::vector<std::string>(), key);
    if (!problem.empty()) return problem;
  }
  return {};
}

std::vector<Reason> selector_notes(std::string_view label, k8s::LabelOperator op,
                                   const std::vector<std::string>& values) {
  std::vector<Reason> out;
  const bool compares = op == LabelOperator::in || op == LabelOperator::not_in;
  if (compares && label.starts_with(kVendor) && label.ends_with(".count")) {
    out.push_back(
        {std::string(kSelectorOnGpuCount),
         fmt::format("spec.nodeSelector uses the label {}, which changes when a GPU of the node dies: the node "
                     "then leaves or joins the policy, and another policy can restart its pods. Select by a "
                     "label that never changes, for example the label of a node pool",
                     label)});
  }
  for (const std::string& value : values) {
    if (!is_product_label(label) || unshared_product(value) == value) continue;
    out.push_back({std::string(kSharedSuffixIgnored),
                   fmt::format("products are compared without -SHARED, which sharing adds to {}: write \"{}\"", label,
                               unshared_product(value))});
  }
  return out;
}

std::vector<Reason> selector_notes(const SharingPolicy& policy) {
  std::vector<Reason> out;
  for (const auto& [label, value] : policy.node_selector.match_labels)
    std::ranges::move(selector_notes(label, LabelOperator::in, {value}), std::back_inserter(out));
  for (const LabelRequirement& requirement : policy.node_selector.match_expressions)
    std::ranges::move(selector_notes(requirement.key, requirement.op, requirement.values), std::back_inserter(out));
  return out;
}

bool policy_selects(const SharingPolicy& policy, const Node& node) {
  const k8s::LabelSelector& selector = policy.node_selector;
  return matches(selector, node, [](std::string_view) { return false; }) &&
         (selector.empty() || has_stop(policy) || selector_problem(policy).empty());
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

namespace {

bool is_forgotten(const std::optional<WallTime>& gone_since, const std::optional<WallTime>& forget_until) {
  return gone_since && forget_until && *gone_since <= *forget_until;
}

// A rollout of the policy was paused, aborted or undone: without the policy another policy would start the same text.
bool has_stopped_rollout(const FleetRecord& record, const std::string& policy) {
  return std::ranges::any_of(record.rollouts, [&](const RecordedSwitches& rollout) {
    return rollout.policy == policy && !rollout.left && (rollout.paused || rollout.aborted || rollout.undone);
  });
}

// Without the CRDs, or while they are being deleted: `default` always exists otherwise, because the operator creates
// it.
bool without_objects(const World& world) {
  return !world.policies_served || world.policies.all().empty();
}

// Policies in the record that still exist: they were created before policy `name` was deleted.
std::vector<std::string> uids_beside(const FleetRecord& record, const World& world, const std::string& name) {
  std::vector<std::string> out;
  for (const auto& [other, recorded] : record.policies) {
    const SharingPolicy* live = world.policies.find(other);
    if (other != name && live != nullptr && live->meta.uid == recorded.policy.meta.uid)
      out.push_back(live->meta.uid.str());
  }
  std::ranges::sort(out);
  return out;
}

SharingPolicy holding(const FleetRecord& record, const World& world, const RecordedPolicy& recorded,
                      const SharingPolicy& spec) {
  SharingPolicy out = recorded_spec(spec);
  out.gone = SharingPolicy::Gone{recorded.gone_since ? recorded.beside : uids_beside(record, world, spec.meta.name)};
  return out;
}

}  // namespace

bool has_recorded_stop(const FleetRecord& record, const SharingPolicy& policy) {
  return has_stop(policy) || has_stopped_rollout(record, policy.meta.name);
}

std::map<std::string, SharingPolicy> policies_that_hold(const FleetRecord& record, const World& world,
                                                        const std::optional<WallTime>& forget_until) {
  std::map<std::string, SharingPolicy> out;
  const bool all = without_objects(world) && !is_forgotten(record.crds_gone_since, forget_until);
  for (const auto& [name, recorded] : record.policies) {
    const SharingPolicy* live = world.policies.find(name);
    if (live != nullptr && !live->meta.deletion_timestamp) continue;
    const SharingPolicy& spec = live != nullptr ? *live : recorded.policy;
    const bool forgotten = is_forgotten(recorded.gone_since, forget_until);
    if (live == nullptr && all && !has_recorded_stop(record, spec)) {
      out.emplace(name, recorded.policy);
    } else if (live == nullptr && recorded.gone_since && !forgotten) {
      out.emplace(name, holding(record, world, recorded, spec));
    } else if (live == nullptr && (all || (name == kDefaultPolicy && world.policies_served))) {
      out.emplace(name, recorded.policy);
    } else if (world.policies_served && !forgotten && (live == nullptr || has_recorded_stop(record, spec))) {
      // One without a stop governs until update_policies() drops it from the record.
      out.emplace(name, holding(record, world, recorded, spec));
    }
  }
  return out;
}

namespace {

// A policy that was created after this one was deleted, and that can govern its nodes instead.
bool has_successor(const RecordedPolicy& gone, const World& world) {
  return std::ranges::any_of(world.policies.all(), [&](const auto& entry) {
    const SharingPolicy& other = *entry.second;
    return !other.meta.deletion_timestamp && other.priority >= gone.policy.priority &&
           std::ranges::find(gone.beside, other.meta.uid.str()) == gone.beside.end();
  });
}

// Specs beyond the size limit are left out, except those with a stop.
void keep_bounded(const FleetRecord& record, std::map<std::string, RecordedPolicy>& policies) {
  std::size_t size = 0;
  for (const auto& [name, recorded] : policies) size += recorded.policy.spec_json.size();
  for (auto it = policies.begin(); it != policies.end() && size > FleetRecord::kMaxPolicies;) {
    const bool kept = it->first == kDefaultPolicy || has_recorded_stop(record, it->second.policy);
    size -= kept ? 0 : it->second.policy.spec_json.size();
    it = kept ? std::next(it) : policies.erase(it);
  }
}

}  // namespace

PolicyUpdate update_policies(const FleetRecord& record, const World& world, Ages& ages,
                             const std::optional<WallTime>& forget_until,
                             const std::function<bool(const std::string&)>& governs) {
  PolicyUpdate out;
  const WallTime second = std::chrono::floor<std::chrono::seconds>(ages.now());
  if (!world.policies_served && is_forgotten(record.crds_gone_since, forget_until)) {
    out.forgotten = true;
    return out;
  }
  const auto keep_gone = [&](const std::string& name, const RecordedPolicy& recorded, const SharingPolicy& spec) {
    RecordedPolicy kept{recorded_spec(spec), recorded.gone_since, recorded.beside};
    if (!kept.gone_since) {
      kept.gone_since = second;
      kept.beside = uids_beside(record, world, name);
      if (has_recorded_stop(record, spec)) out.gone.push_back(name);
    }
    out.policies.emplace(name, std::move(kept));
  };
  const auto keep_for_grace = [&](const std::string& name, const RecordedPolicy& recorded) {
    const WallTime since = recorded.gone_since.value_or(second);
    const Duration left = kDeletionGrace - (ages.now() - ages.stored(stored_time(name, "deletion", since), since));
    if (left <= Duration::zero()) return;
    out.grace_left = std::min(out.grace_left.value_or(left), left);
    keep_gone(name, recorded, recorded.policy);
  };
  for (const SharingPolicy* policy : in_order(world.policies)) {
    const std::string& name = policy->meta.name;
    const auto known = record.policies.find(name);
    const bool reverts = policy->meta.deletion_timestamp && policy->deletion_policy == DeletionPolicy::revert;
    if (reverts && !has_recorded_stop(record, *policy)) continue;
    const bool ends = policy->meta.deletion_timestamp && known != record.policies.end();
    if (!ends) {
      out.policies.emplace(name, RecordedPolicy{recorded_spec(*policy), std::nullopt, {}});
    } else if (is_forgotten(known->second.gone_since, forget_until)) {
      out.forgotten = true;
      out.policies.emplace(name, known->second);
    } else if (has_recorded_stop(record, *policy)) {
      keep_gone(name, known->second, *policy);
    } else {
      out.policies.emplace(name, RecordedPolicy{recorded_spec(*policy), std::nullopt, {}});
    }
  }
  for (const auto& [name, recorded] : record.policies) {
    if (world.policies.find(name) != nullptr) continue;
    if (is_forgotten(recorded.gone_since, forget_until)) {
      out.forgotten = true;
    } else if (without_objects(world) || (name == kDefaultPolicy && !recorded.gone_since)) {
      out.policies.emplace(name, recorded);
    } else if (has_recorded_stop(record, recorded.policy)) {
      const bool lifted = recorded.gone_since && has_successor(recorded, world) && !governs(name);
      if (!lifted) keep_gone(name, recorded, recorded.policy);
    } else {
      keep_for_grace(name, recorded);
    }
  }
  if (!world.policies_served && !out.policies.empty()) {
    out.crds_gone = !record.crds_gone_since;
    out.crds_gone_since = record.crds_gone_since.value_or(second);
  }
  keep_bounded(record, out.policies);
  return out;
}

}  // namespace gso
