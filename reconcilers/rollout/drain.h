// Consumers in the way of a node's change: who they are, why they stay, and how they are asked to leave.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "reconcilers/fleet/pass.h"

namespace gso {

// As far as the node's last listing tells; nullopt: nobody, or nobody knows.
[[nodiscard]] std::optional<BlockedBy> blocked_by_pods(const Pass& pass, const std::string& node,
                                                       const NodeAssessment& assessment);
// The write of this node's change that the operator may not send, with the right that is missing; null: none is known.
[[nodiscard]] const std::string* refused_write(const Pass& pass, const std::string& node);
// The same for the nodes in flight that have waited since an earlier pass, or may not be written, by node.
[[nodiscard]] std::map<std::string, BlockedBy> waiting_in_flight(const Pass& pass);
// The same for nodes that were given up on after idleTimeout, or given back by a person, and stand at the back of the
// queue, by node.
[[nodiscard]] std::map<std::string, BlockedBy> waiting_in_queue(const Pass& pass);

// Pods that ask for a resource that the node serves now and will not serve: what their owners make anew asks for it
// again, and stays Pending.
[[nodiscard]] NodeUse stranded(const NodeUse& use, const NodeAssessment& assessment);

// Nodes that must change together, so that no job loses members in two waves: those of one unit that share jobs with
// each other, directly or through a third.
struct GangPeers {
  std::set<std::string> nodes;     // The node itself among them.
  std::set<std::string> pending;   // Those that have not been started yet.
  std::set<std::string> unlisted;  // Those whose consumers are not known: there may be more mates.
  std::set<std::string> jobs;      // Job::id of those that have members on several nodes.
  [[nodiscard]] std::string jobs_text() const;
};
[[nodiscard]] GangPeers gang_peers_of(const Pass& pass, const std::string& node);

// Under `workloads: Evict`: which pods are waited for because they have no controller, and how to go on; empty where no
// such pod keeps the node waiting.
[[nodiscard]] std::string why_bare_pods_stay(const Pass& pass, const std::string& node,
                                             const NodeAssessment& assessment, const NodeUse& use);

// Evicts, under `workloads: Evict`, what must leave and may: of a node that only serves less afterwards no more pods
// than it takes for the others to fit. Never a pod that refuses it, would be stranded, or has no controller (but for
// spec.rollout.evictBarePods), and no member of a job that cannot leave as a whole.
void evict_consumers(Pass& pass, const std::string& node, const NodeAssessment& assessment, const NodeUse& use);

// Says which pods request more than their node will serve, before anything is changed there.
void plan_foresight(Pass& pass);

// Pods that came while nothing was registered stay Failed for good; their controllers have made others.
void remove_rejected(Pass& pass, const std::string& node);

}  // namespace gso
