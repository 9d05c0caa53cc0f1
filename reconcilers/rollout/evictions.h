// Which pods are evicted from a node: no more than must leave, the least important first.
#pragma once

#include <optional>
#include <string>

#include "reconcilers/fleet/pass.h"

namespace gso {

// Under `workloads: Evict`: which pods the node waits for because an annotation forbids their eviction, because they
// have no controller or because of their namespace (protected_namespaces.h), and how to continue. nullopt if no such
// pod keeps the node waiting.
[[nodiscard]] std::optional<BlockedBy> why_pods_stay(const Pass& pass, const std::string& node,
                                                     const NodeAssessment& assessment, const NodeUse& use);

// Evicts, under `workloads: Evict`, the pods that must leave and are allowed to: if the node only serves less
// afterwards, no more pods than needed for the others to fit; if it must become idle, all of them or, while one of them
// stays, none. Never evicts a pod that refuses it, would be stranded, runs in a protected namespace, or has no
// controller (except with spec.rollout.evictBarePods), nor a member of a job that cannot leave as a whole.
void evict_consumers(Pass& pass, const std::string& node, const NodeAssessment& assessment, const NodeUse& use);

}  // namespace gso
