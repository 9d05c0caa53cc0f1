// Pods that block a node's change: which pods, why they stay, and how they are evicted.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "reconcilers/fleet/pass.h"

namespace gso {

// According to the node's last listing; nullopt: no pod blocks it, or the node has not been listed.
[[nodiscard]] std::optional<BlockedBy> blocked_by_pods(const Pass& pass, const std::string& node,
                                                       const NodeAssessment& assessment);
// The write of this node's change that the operator is not allowed to send, with the missing permission; null: no such
// write is known.
[[nodiscard]] const std::string* refused_write(const Pass& pass, const std::string& node);
// The same, by node, for nodes in a change that have waited since an earlier pass, or that the operator is not allowed
// to write.
[[nodiscard]] std::map<std::string, BlockedBy> blocked_in_progress(const Pass& pass);
// The same, by node, for nodes at the back of the queue: after idleTimeout, or because a person uncordoned them.
[[nodiscard]] std::map<std::string, BlockedBy> blocked_in_queue(const Pass& pass);

// What a node in a change, or one whose change is about to start, waits for.
[[nodiscard]] Drain drain_of(const Pass& pass, const NodeAssessment& assessment);

// Pods that request a resource that the node serves now and will not serve afterwards: the pods that their owners would
// create again request it too, and would stay Pending.
[[nodiscard]] NodeUse stranded(const NodeUse& use, const NodeAssessment& assessment);

// Gang peers: nodes of one rollout that share jobs, directly or through a third node. They change together, so that no
// job loses members in two waves.
struct GangPeers {
  std::set<std::string> nodes;     // Including the node itself.
  std::set<std::string> pending;   // Peers that have not been started yet.
  std::set<std::string> unlisted;  // Nodes whose consumers are not listed yet: more gang peers are possible.
  std::set<std::string> jobs;      // Job::id of the jobs that have members on several nodes.
  [[nodiscard]] std::string jobs_text() const;
};
[[nodiscard]] GangPeers gang_peers_of(const Pass& pass, const std::string& node);

// Under `workloads: Evict`: which pods the node waits for because an annotation forbids their eviction or because they
// have no controller, and how to continue; empty if no such pod keeps the node waiting.
[[nodiscard]] std::string why_pods_stay(const Pass& pass, const std::string& node, const NodeAssessment& assessment,
                                        const NodeUse& use);

// Evicts, under `workloads: Evict`, the pods that must leave and are allowed to: if the node only serves less
// afterwards, no more pods than needed for the others to fit; if it must become idle, all of them or, while one of them
// stays, none. Never evicts a pod that refuses it, would be stranded, or
// has no controller (except with spec.rollout.evictBarePods), nor a member of a job that cannot leave as a whole.
void evict_consumers(Pass& pass, const std::string& node, const NodeAssessment& assessment, const NodeUse& use);

// Capacity warning: reports which pods request more than their node will serve, before the change.
void plan_capacity_warnings(Pass& pass);

// Pods that were bound while no device was registered stay Failed; their controllers have created replacements.
void remove_rejected(Pass& pass, const std::string& node);

}  // namespace gso
