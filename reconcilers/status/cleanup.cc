// One patch for each node with labels or annotations of the operator, one for each finalizer.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/facts.h"
#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/fleet/pass.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/node/node_labels.h"
#include "reconcilers/partitioning/node_moves.h"
#include "reconcilers/partitioning/node_slices.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/status/next_status.h"

namespace gso {

namespace {

constexpr std::string_view kReconciler = "cleanup";

void add(Cleanup& out, Action action, std::string message, std::string node = {}) {
  out.actions.push_back(
      {std::string(kReconciler), std::move(action), {"Cleanup", std::move(message)}, false, std::move(node)});
}

// The label that selects the profile, and the policy that wrote the present value.
struct ProfileLabel {
  std::string key;
  std::string value;
  std::string before;  // Empty: the label was absent.
  const SharingPolicy* policy = nullptr;
};

// Of all plugin installations.
std::set<ObjectKey> config_maps_of_profiles(const FleetIndex& index) {
  std::set<ObjectKey> out;
  for (const PluginInstallation& installation : index.installations())
    if (!installation.config_map.empty()) out.insert(installation.config_map_key());
  return out;
}

class Leaving {
 public:
  Leaving(const World& world, FleetIndex& index) : world_(world), index_(index) {}

  [[nodiscard]] std::optional<ProfileLabel> profile_label(const Node& node) const {
    const NodeAssessment* a = index_.assessment(node.meta.name);
    const std::string key =
        a == nullptr ? std::string(kConfigLabel) : config_label(index_.installations()[a->installation], node);
    const auto writer = label_writer(node, key);
    if (!writer) return std::nullopt;
    ProfileLabel out{key, std::string(node.meta.labels.get(key).value_or("")),
                     owned_labels(node).at(key).before.value_or(""), world_.policies.find(*writer)};
    return out;
  }

  [[nodiscard]] static bool reverts(const ProfileLabel& label) {
    return label.policy != nullptr && label.policy->deletion_policy == DeletionPolicy::revert &&
           label.before != label.value;
  }

  // After every node: where the labels of policies stay (deletionPolicy Retain), and the keys that they name.
  void list_retained(const UnreadConfigMaps& unread, Cleanup& out) const {
    for (const auto& [what, nodes] : retained_) {
      const auto& [label, value, policy] = what;
      const std::string key = is_managed_key(value) ? retained_key(value, unread) : std::string();
      // The selector matches what people have labelled as well: it is named only where names are left out.
      const std::string rest =
          nodes.size() <= kMostNames
              ? std::string()
              : fmt::format(". `kubectl get nodes --selector {}={}` lists them, and others that people gave that label",
                            label, value);
      out.kept.push_back(fmt::format("label {}={} of policy {} is kept on {}: {}{}{}", label, value, policy,
                                     counted(nodes.size(), "node"), first_names(nodes), key, rest));
    }
  }

  // `in_use`: why its profile label must stay, if a policy reverts it; empty: it need not stay.
  void clean(const Node& node, const std::string& in_use, Cleanup& out) {
    PatchNode patch{.name = node.meta.name};
    const auto label = profile_label(node);
    restore_labels(node, label ? label->key : std::string(kConfigLabel), patch, out);
    if (label && reverts(*label))
      revert(*label, in_use, patch, out);
    else if (label)
      retained_[{label->key, label->value, *label_writer(node, label->key)}].push_back(node.meta.name);
    end_partitioning(node, in_use, patch, out);
    for (const std::string_view annotation : kNodeAnnotations)
      if (node.meta.annotations.contains(annotation)) patch.remove_annotations.insert(std::string(annotation));
    if (const auto change = change_of(node); change != nullptr) remove_guards(patch, node, *change);
    keep_unreadable(node, patch, out);
    if (node.meta.labels.contains(kStateLabel)) patch.remove.insert(std::string(kStateLabel));
    const bool marked =
        node.meta.annotations.get(kMpsMarkAnnotation) == "true" && node.meta.labels.contains(kMpsEnabled);
    if (marked) patch.remove.insert(std::string(kMpsEnabled));
    uncordon(node, patch, out);
    const bool nothing = patch.set.empty() && patch.remove.empty() && patch.remove_annotations.empty();
    if (nothing) return;
    std::string message = patch.unschedulable
                              ? "uncordons the node and removes everything that the operator added to it"
                              : "removes everything that the operator added to the node";
    add(out, std::move(patch), std::move(message), node.meta.name);
  }

 private:
  // Where the key of that name stays.
  [[nodiscard]] std::string retained_key(const std::string& key, const UnreadConfigMaps& unread) const {
    std::string out;
    for (const ObjectKey& at : config_maps_of_profiles(index_)) {
      const ConfigMap* config_map = world_.configmaps.find(at);
      if (const auto why = unread.find(at); why != unread.end()) {
        out +=
            fmt::format(", and so does key {} of ConfigMap {} (not checked: {})", key, k8s::to_string(at), why->second);
      } else if (config_map != nullptr && config_map->data.contains(key)) {
        out += fmt::format(", and so does key {} of ConfigMap {}", key, k8s::to_string(at));
      }
    }
    return out;
  }

  void restore_labels(const Node& node, const std::string& profile_label, PatchNode& patch, Cleanup& out) const {
    const std::set<std::string> foreign = nfd_owned(node);
    const FleetRecord* record = index_.impl().record_or_null();
    for (const auto& [key, owned] : owned_labels(node)) {
      const std::optional<std::string>& before = owned.before;
      if (key == profile_label || foreign.contains(key)) continue;
      const auto now = node.meta.labels.get(key);
      const bool selected = key == kConfigLabel || (record != nullptr && record->is_node_label(key));
      if (!is_sharing_label(key) && !selected && key != kMpsPipeDirectory) {
        if (!now) continue;
        out.kept.push_back(
            fmt::format("node {}: label {} is left as it is ({}): annotation {} names it, but no device plugin of the "
                        "node selects its profile by it",
                        node.meta.name, key, *now, kOwnedAnnotation));
      } else if (key == kMpsCapable && now == "true" && before != "true") {
        out.kept.push_back(fmt::format("node {}: label {} is kept: the MPS control daemon would stop without it",
                                       node.meta.name, key));
      } else if (owned.is_changed(now)) {
        out.kept.push_back(
            fmt::format("node {}: label {} is left as it is ({}): another client has changed it since the "
                        "operator wrote {}",
                        node.meta.name, key, now ? *now : "absent", owned.value));
      } else if (before && now != *before) {
        patch.set[key] = *before;
      } else if (!before && now) {
        patch.remove.insert(key);
      }
    }
  }

  static void revert(const ProfileLabel& label, const std::string& in_use, PatchNode& patch, Cleanup& out) {
    if (!in_use.empty()) {
      out.kept.push_back(fmt::format("node {}: label {}={} of policy {} is kept: {}", patch.name, label.key,
                                     label.value, label.policy->meta.name, in_use));
    } else if (label.before.empty()) {
      patch.remove.insert(label.key);
    } else {
      patch.set[label.key] = label.before;
    }
  }

  // What an annotation says that cannot be read is unknown, and only a person can put it right.
  static void keep_unreadable(const Node& node, PatchNode& patch, Cleanup& out) {
    const auto keep = [&](std::string_view annotation, const std::string& problem, std::string_view beside) {
      if (problem.empty()) return;
      patch.remove_annotations.erase(std::string(annotation));
      out.kept.push_back(fmt::format("node {}: {}: the annotation is kept, and so {}, then remove the annotation",
                                     node.meta.name, problem, beside));
    };
    constexpr std::string_view kCordon =
        "is a cordon that might be the operator's: check the node, uncordon it if nobody else cordoned it";
    constexpr std::string_view kLabels = "are labels that might be the operator's: check the labels";
    keep(kChangeAnnotation, change_on(node).problem, kCordon);
    keep(kMpsDaemonChangeAnnotation, mps_daemon_change_on(node).problem, kCordon);
    keep(kOwnedAnnotation, owned_on(node).problem, kLabels);
    const std::string mark = mark_of(node).problem;
    keep(kPartitioningAnnotation,
         mark.empty() ? mark : fmt::format("annotation {} cannot be read ({})", kPartitioningAnnotation, mark),
         kLabels);
  }

  static void end_partitioning(const Node& node, const std::string& in_use, PatchNode& patch, Cleanup& out) {
    if (!node.meta.annotations.contains(kPartitioningAnnotation) || !mark_of(node).problem.empty()) return;
    PatchNode restored = restoring_patch(node);
    if (restored.set.empty() && restored.remove.empty()) return;
    if (is_partitioned_by_nos(node) && !in_use.empty()) {
      out.kept.push_back(fmt::format("node {}: label {}={} is kept: {}", node.meta.name, kConfigLabel,
                                     node.meta.labels.get(kConfigLabel).value_or(""), in_use));
      return;
    }
    patch.set.merge(restored.set);
    patch.remove.merge(restored.remove);
    patch.resource_version = restored.resource_version;
  }

  void uncordon(const Node& node, PatchNode& patch, Cleanup& out) const {
    if (!is_cordoned_by_operator(node) || !node.unschedulable) return;
    const NodeAssessment* a = index_.assessment(node.meta.name);
    const std::string_view holder =
        holder_of(node, a == nullptr ? PluginInstallation() : index_.installations()[a->installation]);
    // The replacement of the standalone daemon is the operator's own, and ends with it.
    if (!holder.empty() && holder != kStandaloneMpsChange) {
      out.kept.push_back(fmt::format("node {} stays cordoned: {}; uncordon the node once this has ended",
                                     node.meta.name, describe_holder(holder, node)));
      return;
    }
    patch.unschedulable = false;
    patch.resource_version = node.meta.resource_version;
  }

  const World& world_;
  FleetIndex& index_;
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<std::string>> retained_;
};

// Writes the conditions, and what else `status` has changed: a merge patch removes only members that are null.
void end_status(ObjectRef object, const std::string& before, Json status,
                const std::vector<StatusCondition>& conditions, std::int64_t generation, WallTime now,
                std::string message, Cleanup& out) {
  const Json old = parse_status(before);
  for (const char* of_facts : {"reason", "waits"}) status.erase(of_facts);
  if (status.contains("nodes"))
    for (Json& node : status["nodes"]) erase_facts(node);
  status["conditions"] = condition_list(conditions, old, generation, now);
  for (const auto& [field, value] : old.items())
    if (!status.contains(field)) status[field] = nullptr;
  add(out, PatchStatus{std::move(object), dump(status)}, std::move(message));
}

// Otherwise the rollout would be in progress forever, because no operator is left to update its status.
void end_rollout(const SharingRollout& rollout, WallTime now, Cleanup& out) {
  if (has_ended(rollout.phase)) return;
  const Reason why{kOperatorRemoved,
                   "the operator was removed while the rollout was in progress: its nodes are not changed any further"};
  Json status = parse_status(rollout.status_json);
  status["phase"] = "Superseded";
  keep_failed_nodes(status);
  // Its switches must have no effect after a reinstallation (kCurrentCondition).
  end_status(rollout_ref(rollout), rollout.status_json, std::move(status),
             {{"Ready", false, why}, {"Progressing", false, why}, {kCurrentCondition, false, why}},
             rollout.meta.generation, now, fmt::format("ends as Superseded ({})", kOperatorRemoved), out);
}

// Otherwise the old conditions would stay forever, as if an operator still watched. A reinstalled operator sets them
// again.
void end_policy(const SharingPolicy& policy, WallTime now, Cleanup& out) {
  const Reason why{kOperatorRemoved, "the operator was removed: this policy's nodes are no longer managed"};
  Json status = parse_status(policy.status_json);
  if (!status.contains("conditions") || policy.meta.deletion_timestamp) return;
  if (false_condition(status, "Ready").starts_with(kOperatorRemoved)) return;
  for (const char* field : {"currentRollout", "estimatedCompletion", "oldestInProgress"}) status.erase(field);
  std::vector<StatusCondition> conditions;
  for (const char* type : {"Ready", "Progressing", "Degraded", "ConfigValid"})
    conditions.push_back({type, false, why, true});
  end_status(policy_ref(policy), policy.status_json, std::move(status), conditions, policy.meta.generation, now,
             fmt::format("its conditions become Unknown ({})", kOperatorRemoved), out);
}

}  // namespace

std::set<std::string> nodes_to_revert(const World& world, FleetIndex& index) {
  const Leaving leaving(world, index);
  std::set<std::string> out;
  for (const auto& [key, node] : world.nodes.all()) {
    const auto label = leaving.profile_label(*node);
    if (label && Leaving::reverts(*label)) out.insert(key.name);
    if (node->meta.annotations.contains(kPartitioningAnnotation)) out.insert(key.name);
  }
  return out;
}

std::set<std::string> nodes_that_lose_daemons(const World& world, const ObjectKey& daemonset) {
  const DaemonSet* object = world.daemonsets.find(daemonset);
  const std::optional<Operand> daemon = object == nullptr ? std::nullopt : standalone_daemon_of(*object);
  if (!daemon || daemon->watches_host) return {};
  if (object->meta.annotations.get(kEndDaemonsAnnotation) == fmt::format("{}", daemon->generation)) return {};
  std::set<std::string> out;
  for (const auto& [key, node] : world.nodes.all())
    if (node->meta.labels.get(kMpsCapable) != "true" && selects(*daemon, *node, true) != Selects::no)
      out.insert(key.name);
  return out;
}

std::set<ObjectKey> config_maps_of_retained_keys(const World& world, FleetIndex& index) {
  const Leaving leaving(world, index);
  const bool retains = std::ranges::any_of(world.nodes.all(), [&](const auto& entry) {
    const auto label = leaving.profile_label(*entry.second);
    return label && !Leaving::reverts(*label) && is_managed_key(label->value);
  });
  return retains ? config_maps_of_profiles(index) : std::set<ObjectKey>();
}

namespace {

// Why the label of that node must stay; empty: it need not.
std::string use_of_gpus(const NodesInUse& in_use, const std::string& node) {
  if (in_use.used.contains(node)) return "pods use the GPUs, and the change would break these pods";
  const auto unknown = in_use.unknown.find(node);
  if (unknown == in_use.unknown.end()) return {};
  return fmt::format("pods might use the GPUs, and the change would break these pods: {}", unknown->second);
}

}  // namespace

Cleanup plan_cleanup(const World& world, FleetIndex& index, const NodesInUse& in_use, const UnreadConfigMaps& unread,
                     WallTime now) {
  Cleanup out;
  Leaving leaving(world, index);
  for (const Node* node : in_order(world.nodes)) leaving.clean(*node, use_of_gpus(in_use, node->meta.name), out);
  leaving.list_retained(unread, out);
  for (const SharingPolicy* policy : in_order(world.policies)) {
    if (std::ranges::find(policy->finalizers, kRevertFinalizer) == policy->finalizers.end()) continue;
    PatchFinalizers patch{policy_ref(*policy), policy->finalizers, policy->meta.resource_version};
    std::erase(patch.finalizers, kRevertFinalizer);
    add(out, std::move(patch), "no operator is left to revert its nodes");
  }
  for (const SharingPolicy* policy : in_order(world.policies)) end_policy(*policy, now, out);
  for (const SharingRollout* rollout : in_order(world.rollouts)) end_rollout(*rollout, now, out);
  return out;
}

}  // namespace gso
