// Which pods are evicted from a node: no more than must leave, the least important first.
#pragma once

#include <string>

#include "reconcilers/fleet/pass.h"

namespace gso {

// Under `workloads: Evict`: which pods the node waits for because an annotation forbids their eviction or because they
// have no controller, and how to continue; empty if no such pod keeps the node waiting.
[[nodiscard]] std::string why_pods_stay(const Pass& pass, const std::string& node, const NodeAssessment& assessment,
                                        const NodeUse& use);

// Evicts, under `workloads: Evict`, the pods that must leave and are allowed to: if the node only serves less
// afterwards, no more pods than needed for the others to fit; if it must become idle, all of them or, while one of them
// stays, none. Never evicts a pod that refuses it, would be stranded, or has no controller (except with
// spec.rollout.evictBarePods), nor a member of a job that cannot leave as a whole.
void evict_consumers(Pass& pass, const std::string& node, const NodeAssessment& assessment, const NodeUse& use);

}  // namespace gso
