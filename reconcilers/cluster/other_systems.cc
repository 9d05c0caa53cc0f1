#include "reconcilers/cluster/other_systems.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "reconcilers/cluster/node_match.h"
#include "reconcilers/cluster/operand_namespaces.h"
#include "reconcilers/model/hami_names.h"
#include "reconcilers/model/image_name.h"
#include "reconcilers/model/labels.h"

namespace gso {

namespace {

// nos also has `mig`: it then creates MIG devices, which any plugin serves.
constexpr std::string_view kMps = "mps";

std::optional<std::string_view> partitioning_label(const Node& node) {
  for (const std::string_view label : {kNosPartitioning, kNosPartitioningBefore}) {
    if (const auto value = node.meta.labels.get(label)) return *value == kMps ? std::optional(label) : std::nullopt;
  }
  return std::nullopt;
}

bool demands(const Operand& operand, std::string_view label) {
  const auto selected = operand.node_selector.find(std::string(label));
  if (selected != operand.node_selector.end() && selected->second == kMps) return true;
  const auto asks = [&](const NodeSelectorRequirement& r) {
    return r.key == label && r.op == "In" && r.values.size() == 1 && r.values.front() == kMps;
  };
  return !operand.affinity_terms.empty() &&
         std::ranges::all_of(operand.affinity_terms, [&](const auto& term) { return std::ranges::any_of(term, asks); });
}

}  // namespace

bool is_partitioned_by_nos(const Node& node) {
  return partitioning_label(node).has_value();
}

std::vector<std::string> partitioned_nodes(const World& world) {
  std::vector<std::string> out;
  for (const auto& [key, node] : world.nodes.all()) {
    if (is_partitioned_by_nos(*node)) out.push_back(key.name);
  }
  std::ranges::sort(out);
  return out;
}

std::string nos_label(const Node& node) {
  const auto label = partitioning_label(node);
  return label ? fmt::format("{}={}", *label, kMps) : std::string();
}

std::string nos_in_charge(const Node& node) {
  // Only node.partitioning writes it. Whether that is switched on is a setting of the operator, and no object shows it.
  if (node.meta.annotations.contains(kPartitioningAnnotation)) {
    return fmt::format(
        "the operator cuts the GPUs of this node into slices for the pods that wait (label {}), and no SharingPolicy "
        "applies",
        nos_label(node));
  }
  return fmt::format(
      "the GPUs of this node are cut into slices (label {}): by the operator where partitioning is switched on (chart "
      "value modes.partitioning), otherwise by nos. No SharingPolicy applies while the node has the label",
      nos_label(node));
}

bool is_plugin_of_nos(const Operand& plugin) {
  return demands(plugin, kNosPartitioning) || demands(plugin, kNosPartitioningBefore);
}

std::set<std::string> keys_of_nos(const World& world) {
  std::set<std::string> keys;
  std::set<std::string> of_others;
  for (const auto& [key, node] : world.nodes.all()) {
    const auto named = node->meta.labels.get(kConfigLabel);
    if (named) (is_partitioned_by_nos(*node) ? keys : of_others).emplace(*named);
  }
  std::erase_if(keys, [&](const std::string& key) { return of_others.contains(key); });
  return keys;
}

namespace {

bool is_hami_plugin(const DaemonSet& daemonset) {
  const auto label = daemonset.match_labels.find(std::string(hami::kComponentLabel));
  if (label != daemonset.match_labels.end() && label->second == hami::kComponent) return true;
  return std::ranges::any_of(daemonset.containers, [](const ContainerSpec& container) {
    return container.name == hami::kContainer && image_name(container.image) == hami::kImage;
  });
}

}  // namespace

std::vector<Operand> hami_plugins(const World& world) {
  std::vector<Operand> out;
  for (const DaemonSet* daemonset : all_daemonsets(world)) {
    if (is_hami_plugin(*daemonset)) out.push_back(placement_of(*daemonset));
  }
  return out;
}

const Operand* hami_plugin_on(const std::vector<Operand>& plugins, const Node& node) {
  const auto found =
      std::ranges::find_if(plugins, [&](const Operand& plugin) { return selects(plugin, node, false) != Selects::no; });
  return found == plugins.end() ? nullptr : &*found;
}

bool was_registered_by_hami(const Node& node) {
  return node.meta.annotations.contains(hami::kRegistered);
}

namespace {

enum class MarkKind : std::uint8_t { label, taint };

struct QuarantineMark {
  MarkKind kind;
  std::string_view key;
  std::string_view value;  // The value begins with it; empty: any value, but a label needs one.
  std::string_view by;
};

constexpr QuarantineMark kMarks[] = {
    // NVIDIA/NVSentinel, commons/pkg/statemanager: quarantined, draining, drain-succeeded, drain-failed, remediating,
    // remediation-succeeded, remediation-failed. The label is removed when the node is healthy again.
    {MarkKind::label, "dgxc.nvidia.com/nvsentinel-state", "", "NVSentinel has quarantined the node"},
    // AWS, "Resilience-related Kubernetes labels by SageMaker HyperPod": Schedulable, Unschedulable (deep health checks
    // run), UnschedulablePendingReplacement, UnschedulablePendingReboot. The node has the taint during deep health
    // checks ("Installing packages on the Amazon EKS cluster", tolerations).
    {MarkKind::label, "sagemaker.amazonaws.com/node-health-status", "Unschedulable",
     "SageMaker HyperPod has taken the node out of service"},
    {MarkKind::taint, "sagemaker.amazonaws.com/node-health-status", "Unschedulable",
     "SageMaker HyperPod has taken the node out of service"},
    // Google, "Manage disruption to GKE nodes that run GPUs or TPUs": the host's maintenance has begun.
    {MarkKind::label, "cloud.google.com/active-node-maintenance", "ONGOING",
     "GKE is doing maintenance on the node's host"},
    {MarkKind::taint, "cloud.google.com/impending-node-termination", "", "GKE is about to terminate the node"},
    // Azure/AKS release notes and "AKS node auto-repair" (node auto-drain); the second is its former name.
    {MarkKind::taint, "remediator.kubernetes.azure.com/unschedulable", "", "AKS is repairing or draining the node"},
    {MarkKind::taint, "remediator.aks.microsoft.com/unschedulable", "", "AKS is repairing or draining the node"},
    // medik8s/self-node-remediation, controllers/selfnoderemediation_controller.go: NodeNoExecuteTaint.
    {MarkKind::taint, "medik8s.io/remediation", "", "Self Node Remediation is fencing the node"},
    // medik8s/fence-agents-remediation, api/v1alpha1: FARNoExecuteTaintKey, and FARNoScheduleTaintKey of later
    // releases.
    {MarkKind::taint, "medik8s.io/fence-agents-remediation", "", "Fence Agents Remediation is fencing the node"},
    {MarkKind::taint, "remediation.medik8s.io/fence-agents-remediation", "",
     "Fence Agents Remediation is fencing the node"},
    // medik8s/node-maintenance-operator, controllers/taint.go.
    {MarkKind::taint, "medik8s.io/drain", "", "the Node Maintenance Operator has put the node into maintenance"},
    // Kubernetes, "Non-graceful node shutdown handling"; Self Node Remediation also sets it (OutOfServiceTaint).
    {MarkKind::taint, "node.kubernetes.io/out-of-service", "", "the node is marked as shut down"},
    // kubernetes-sigs/karpenter, pkg/apis/v1/taints.go: set by disruption, node repair and termination.
    {MarkKind::taint, "karpenter.sh/disrupted", "", "Karpenter is removing the node"},
};

bool fits(const QuarantineMark& mark, std::string_view value) {
  return value.starts_with(mark.value) && (mark.kind == MarkKind::taint || !value.empty());
}

std::string print(const QuarantineMark& mark, std::string_view value) {
  return fmt::format("{} {}{}{}", mark.kind == MarkKind::label ? "label" : "taint", mark.key, value.empty() ? "" : "=",
                     value);
}

}  // namespace

std::optional<Quarantine> quarantine_of(const Node& node) {
  for (const QuarantineMark& mark : kMarks) {
    if (mark.kind == MarkKind::label) {
      const auto value = node.meta.labels.get(mark.key);
      if (value && fits(mark, *value)) return Quarantine{mark.by, print(mark, *value)};
      continue;
    }
    for (const Taint& taint : node.taints) {
      if (taint.key == mark.key && fits(mark, taint.value.view())) {
        return Quarantine{mark.by, print(mark, taint.value.view())};
      }
    }
  }
  return std::nullopt;
}

}  // namespace gso
