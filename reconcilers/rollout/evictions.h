// Which pods are evicted from a node: no more than must leave, the least important first.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/rollout/drain.h"

namespace gso {

// The switch that lets the operator evict pods without a controller, as messages name it.
inline constexpr std::string_view kEvictBarePodsField = "spec.rollout.evictBarePods";
// Begins what is said of pods whose eviction the API server forbids; other writes can be forbidden, too.
inline constexpr std::string_view kNotAllowedToEvict = "the operator is not allowed to evict";
// Pods that the operator never evicts, as messages name them.
inline constexpr std::string_view kPodsOfDaemonSets = "pods of DaemonSets or static pods";

// Under `workloads: Evict`: which pods the node waits for because an annotation forbids their eviction, because they
// have no controller or because of their namespace (protected_namespaces.h), and how to continue. nullopt if no such
// pod keeps the node waiting.
[[nodiscard]] std::optional<Reason> why_pods_stay(const Pass& pass, const NodeDrain& drain, const NodeUse& use);

// Why pods stay, as far as a status says it with the sentences of why_pods_stay(): for whoever has not listed the pods.
struct ReportedStay {
  bool bare = false;  // Pods without a controller.
  std::string
      annotation;  // The first that forbids an eviction, "gpusharing.dev/do-not-disrupt=true"; empty: none does.
  bool otherwise = false;  // Pods that return to the node, or of DaemonSets and static ones.
  [[nodiscard]] bool is_any() const { return bare || !annotation.empty() || otherwise; }
};
[[nodiscard]] ReportedStay reported_stay(std::string_view message);

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
