// Pods that block a node's change: which pods, why they stay, which of them are evicted, and which nodes change
// together because of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "reconcilers/fleet/pass.h"

namespace gso {

// --- Pods that block a node's change: which pods, and why they stay.

// According to the node's last listing; nullopt: no pod blocks it, or the node has not been listed.
[[nodiscard]] std::optional<Reason> blocked_by_pods(const Pass& pass, const std::string& node,
                                                    const NodeAssessment& assessment);
// The write of this node's change that the operator is not allowed to send, with the missing permission; null: no such
// write is known.
[[nodiscard]] const std::string* refused_write(const Pass& pass, const std::string& node);
// The same, by node, for nodes in a change that have waited since an earlier pass, or that the operator is not allowed
// to write. All rollouts and both statuses read it: RolloutViews finds it once for each pass.
[[nodiscard]] std::map<std::string, Reason> find_blocked_in_progress(const Pass& pass);
// The same, by node, for nodes at the back of the queue: after idleTimeout, or because a person uncordoned them.
[[nodiscard]] std::map<std::string, Reason> blocked_in_queue(const Pass& pass);
// A node that one of them names with that reason waits for workloads: nobody can foretell until when.
[[nodiscard]] bool is_of_workloads(std::string_view reason);

// Pods that request a resource that the node serves now and will not serve afterwards: the pods that their owners would
// create again request it too, and would stay Pending.
// `afterwards`: null if it will serve what it serves now.
[[nodiscard]] NodeUse stranded(const NodeUse& use, const NodeExpectation* afterwards);

// Those of these pods whose last requested eviction was refused, with the answers; nullopt: none was.
[[nodiscard]] std::optional<Reason> refused_evictions(const Pass& pass, const std::string& node, const NodeUse& use);

// Pods that were bound while no device was registered stay Failed; their controllers have created replacements.
void remove_rejected(Pass& pass, const std::string& node);

// --- A node that loses GPU clients before it changes, whatever the change is: what the choice of the pods to evict,
// and the report of those that stay, need to know.

struct NodeDrain {
  std::string node;
  const SharingPolicy* policy = nullptr;  // Never null.
  Drain until = Drain::idle;
  const NodeExpectation* afterwards = nullptr;      // What it will serve; null: what it serves now.
  std::map<std::string, std::int64_t> serves = {};  // How many of each resource it certainly serves then.
  // When its change began to wait for its pods; nullopt: no change is in progress.
  std::optional<WallTime> since = {};
};
// For the change of its profile, in progress or about to begin.
[[nodiscard]] NodeDrain node_drain_of(const Pass& pass, const std::string& node, const NodeAssessment& assessment);

// --- Gang peers, and the capacity warning before a change.

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

// "10 of nvidia.com/gpu requested, 4 served afterwards"; empty: the node will serve what its pods request. `serves`: at
// least that much. `known`: has the resources that it serves exactly so much of.
[[nodiscard]] std::string requests_beyond(const NodeUse& use, const std::map<std::string, std::int64_t>& serves,
                                          const std::map<std::string, std::int64_t>& known);

// How the GPU Operator changes its DaemonSets, unless their updateStrategy is OnDelete.
inline constexpr std::string_view kReplacedAtOnce =
    "The GPU Operator replaces the plugin's pods by itself: not in waves, and it waits for no pod that uses GPUs";
inline constexpr std::string_view kReplacedInWaves = "The operator replaces the plugin's pods in the policy's waves";
// What the announced ClusterPolicy takes from the nodes of the installation: how many, from which amounts to which, and
// where pods request more than is left. Empty: nothing. `policy`: of its nodes alone; empty: of all.
[[nodiscard]] std::string announced_loss(Pass& pass, const PluginInstallation& installation,
                                         std::string_view policy = {});

// --- Which pods are evicted from a node: no more than must leave, the least important first.

// The switch that lets the operator evict pods without a controller, as messages name it.
inline constexpr std::string_view kEvictBarePodsField = "spec.rollout.evictBarePods";
// Pods that the operator never evicts, as messages name them.
inline constexpr std::string_view kPodsOfDaemonSets = "pods of DaemonSets or static pods";

// Under `workloads: Evict`: which pods the node waits for because an annotation forbids their eviction, because they
// have no controller or because of their namespace (cluster/discovery.h), and how to continue. nullopt if no such
// pod keeps the node waiting.
[[nodiscard]] std::optional<Reason> why_pods_stay(const Pass& pass, const NodeDrain& drain, const NodeUse& use);

// What `workloads: Evict` would bring a node that waits for pods, with or without spec.rollout.evictBarePods, whatever
// its policy says now: for advice. Members of its pods' jobs on other nodes are not looked at.
struct EvictionOutlook {
  bool frees = false;  // So many pods are evicted that the node can change.
  std::string why;     // Otherwise: which pods are not evicted, and why.
  NodeUse bare;        // The pods without a controller among those that it evicts: nothing creates them again.
};
[[nodiscard]] EvictionOutlook eviction_outlook(const Pass& pass, const std::string& node,
                                               const NodeAssessment& assessment, bool evict_bare_pods);

// What a node of that name is drained for; nullopt: for nothing.
using DrainOf = std::function<std::optional<NodeDrain>(const std::string& node)>;

// A node whose pods are evicted.
struct Eviction {
  NodeDrain drain;
  GangPeers peers;    // Of the node.
  DrainOf drain_of;   // Of its peers.
  std::string cause;  // For people: "GPU sharing changes (rollout …)"
};

// Evicts, under `workloads: Evict`, the pods that must leave and are allowed to: if the node only serves less
// afterwards, no more pods than needed for the others to fit; if it must become idle, all of them or, while one of them
// stays, none. Never evicts a pod that refuses it, would be stranded, runs in a protected namespace, or has no
// controller (except with spec.rollout.evictBarePods), nor a member of a job that cannot leave as a whole.
void evict_consumers(Pass& pass, const Eviction& eviction, const NodeUse& use);
// The same, for the change of a node's profile.
void evict_consumers(Pass& pass, const std::string& node, const NodeAssessment& assessment, const NodeUse& use);

}  // namespace gso
