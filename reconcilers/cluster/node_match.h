// Whether a DaemonSet's template selects a node: the DaemonSet controller's rules as far as the NVIDIA operands use
// them. Source: kubernetes pkg/controller/daemon (Predicates, AddOrUpdateDaemonPodTolerations) and component-helpers'
// node affinity.
#pragma once

#include <string>
#include <vector>

#include "reconcilers/cluster/discovery.h"

namespace gso {

// Whether one of the tolerations lets a pod start or stay on a node with that taint.
[[nodiscard]] bool tolerates(const std::vector<Toleration>& tolerations, const Taint& taint);

// Whether the node matches required node affinity, an OR of ANDs; no terms: any node matches.
[[nodiscard]] bool matches_terms(const std::vector<std::vector<NodeSelectorRequirement>>& affinity_terms,
                                 const Node& node);

// Where a DaemonSet of whatever kind places its pods: only `key` and the placement of the answer are filled.
[[nodiscard]] Operand placement_of(const DaemonSet& daemonset);

// How well a DaemonSet's template selects a node: nodeSelector, required node affinity, NoSchedule and NoExecute taints
// (with the tolerations every DaemonSet pod has). `paused`: only a deploy label with the value "paused-for-…" excludes
// the node; its pods are deleted until the driver manager or the MIG manager restores the label. `tainted`: only a
// taint excludes the node; running pods continue (NoSchedule), and a deleted pod is not created again.
enum class Selects { no, tainted, yes, paused };
// `ignore_mps_capable`: the label nvidia.com/mps.capable follows the profile, so it does not decide whether a node
// belongs to an MPS DaemonSet.
[[nodiscard]] Selects selects(const Operand& operand, const Node& node, bool ignore_mps_capable);

// The first taint of the node that the operand's pods do not tolerate, or nullptr.
[[nodiscard]] const Taint* untolerated(const Operand& operand, const Node& node);

// "maintenance=true:NoSchedule", as kubectl writes it.
[[nodiscard]] std::string to_string(const Taint& taint);

}  // namespace gso
