// One look at a cluster, by lists: for commands that ask once instead of watching.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/reading/operator_lease.h"
#include "k8sclient/api/reader.h"
#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"
#include "reconcilers/cluster/cluster_pods.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// Of each CRD of the operator.
enum class Served { no, yes, unknown };  // unknown: it cannot be read.
struct SharingKinds {
  Served policies = Served::unknown;
  Served rollouts = Served::unknown;
};

// Reads what planners read into `world`, once. Kinds that are not served stay empty; a kind or namespace that cannot be
// read is named in `incomplete`, once and with the missing rule, and left out; so are SharingRollouts whose stop a
// retry has ended (is_retried()). `sharing_kinds` may be null. Errors: Nodes or DaemonSets cannot be read.
boost::asio::awaitable<k8s::Result<void>> read_world(k8s::Reader* client, PlannerSettings settings, World* world,
                                                     std::vector<std::string>* incomplete,
                                                     SharingKinds* sharing_kinds = nullptr);

// The whole cluster: a World with KAI's objects and look-ups, and who uses the GPUs of each node.
struct ClusterView {
  k8s::WallTime now{};  // All of it counts as read then. Who plans for another time sets it before the look.
  World world;
  std::map<std::string, NodeConsumers> consumers;
  UnstartedPods unstarted{};
  std::vector<std::string> incomplete = {};  // What cannot be read, by whom, and which rule is missing; each once.
  OperatorPresence presence{};               // Filled by commands that say so.
  SharingKinds sharing_kinds{};              // Of a cluster that was read.
  std::vector<std::string> leases{};         // The JSON of those among manifests.
};

// Not empty: what device plugins load in some namespaces cannot be read, or what the operator decides by
// (cluster/record_store.h), so it was not checked and "no errors" would be wrong.
[[nodiscard]] std::string coverage_gap(const World& world, const PlannerSettings& settings);

// For plans of what was read: which kinds are known. Every one is, but for SharingPolicies and SharingRollouts that an
// account is not allowed to read. `world` must outlive the result.
[[nodiscard]] std::function<bool(const k8s::Gvr& resource)> was_read(const World& world);

// For a cluster where the operator has no Lease (`none`): if objects show that an operator has recorded nodes all the
// same, its record is in another namespace than the one that was given. It then counts as unread, and `incomplete` says
// so: a baseline that is assumed instead would be wrong.
void note_record_elsewhere(const std::optional<NoOperator>& none, const PlannerSettings& settings, World* world,
                           std::vector<std::string>* incomplete);

// One list of all pods (those without a word of GPUs, on nodes that are not partitioned, are dropped as they come),
// besides read_world(). If pods cannot be listed across namespaces, consumers and reservations are unknown;
// `incomplete` says so, and no planner concludes anything about them.
boost::asio::awaitable<k8s::Result<void>> read_cluster(k8s::Reader* client, k8s::Clock* clock, PlannerSettings settings,
                                                       ClusterView* view);

}  // namespace gso
