// See quarantine.h.
#include "reconcilers/cluster/quarantine.h"

#include <fmt/format.h>

#include <algorithm>

namespace gso {
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
