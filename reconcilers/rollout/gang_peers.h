// Gang peers, and the capacity warning before a change.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "reconcilers/fleet/pass.h"

namespace gso {

// Gang peers: nodes of one rollout that share jobs, directly or through a third node. They change together, so that no
// job loses members in two waves.
struct GangPeers {
  std::set<std::string> nodes;       // Including the node itself.
  std::set<std::string> pending;     // Peers that have not been started yet.
  std::set<std::string> unlisted;    // Nodes whose consumers are not listed yet: more gang peers are possible.
  std::set<std::string> unlistable;  // The same, and their lists fail.
  std::set<std::string> jobs;        // Job::id of the jobs that have members on several nodes.
  [[nodiscard]] std::string jobs_text() const;
};
// Among the nodes that change their profile.
[[nodiscard]] GangPeers gang_peers_of(const Pass& pass, const std::string& node);

// Which nodes could change together with one that is asked about.
struct PeerRules {
  std::function<bool(const std::string& node)> counts;  // The node is in such a change, or waits for one.
  std::function<bool(const std::string& node)> waits;   // The node waits for one.
};
[[nodiscard]] GangPeers gang_peers_of(const Snapshot& snapshot, const std::string& node, const PeerRules& rules);

// Capacity warning: reports which pods request more than their node will serve, before the change.
void plan_capacity_warnings(Pass& pass);

}  // namespace gso
