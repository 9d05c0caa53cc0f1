// What a configuration change would do to each node, for `rollout diff`, and which nodes would be changed first.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/fleet/fleet.h"
#include "reconcilers/fleet/pass.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/reasons/reason.h"

namespace gso {

// --- What a configuration change would do to each node: for `rollout diff`.

struct NodeDifference {
  std::string node;
  std::string policy;
  std::string profile;  // Its target, "<configmap>/<key>".
  std::string from;     // Revisions; `from` is empty if it is not known.
  std::string to;
  ChangeCause cause = ChangeCause::none;
  Transition transition = Transition::none;
  // The components whose pods are deleted; none if only a label changes and the pods reload by themselves.
  std::vector<Component> restarts;
  bool cordons = false;                                  // For a node with consumers, find_obstacles() decides.
  std::optional<bool> cordon;                            // What the policy says (RolloutSpec::cordon).
  Drain drain = Drain::nothing;                          // The condition on its consumers before the change.
  std::map<std::string, std::int64_t> serves;            // Amount of each resource afterwards, as far as it is known.
  std::map<std::string, std::int64_t> certainly_serves;  // At least that many, where the number of GPUs is not known.
  WorkloadMode workloads = WorkloadMode::wait_for_idle;
  // Why it would not be changed. Without a code: it is in a change now, and these pods block it.
  Reason blocked;
  std::string_view held;  // The holder that stops its start ("Held": a person); empty: none does.
  // It is in a change now: `restarts` are the pods that are still to be replaced, or for another target than that of
  // the change those that must be replaced once more.
  bool in_progress = false;
  // No pod of its change was deleted, and it runs what it should run then: the operator ends its change and uncordons
  // it. Nothing is restarted.
  bool leaves = false;
  bool announced = false;  // By a ClusterPolicy: no pod is waited for, and pods of DaemonSets break as well.
  // Consumers that would break, or that request more than is left ("namespace/name"): filled by find_obstacles().
  std::vector<std::string> blocked_by_pods;
  std::string beyond;  // "10 of nvidia.com/gpu requested, 4 served afterwards"; empty: what they request is served.
};

// If the fleet has no record, adds the one that the operator would write when it first reads the fleet, so that drift
// and unproven nodes are shown as after an installation. True if a record was assumed. `index` is refreshed.
bool assume_baseline(World& world, FleetIndex& index, const PlannerSettings& settings, WallTime now);

// For people, if that is true. `operator_lease`: the Lease that an operator renews although it has recorded nothing;
// empty: none does, or that is unknown.
[[nodiscard]] std::string assumed_baseline_text(std::string_view operator_lease);
// What such an operator is, as half a sentence.
[[nodiscard]] std::string unrecorded_operator_text(std::string_view operator_lease);

// Nodes that would change in that world, by name, and those that could not (`blocked`). For a fleet without a record,
// each node is assumed to run what its pods have loaded from the present texts: `world` then gets the record that the
// operator would write.
[[nodiscard]] std::vector<NodeDifference> differences(World& world, const PlannerSettings& settings, WallTime now);

// The same for what a ClusterPolicy in that world announces, and its DaemonSets do not have yet: their pods are
// replaced with them. `blocked` (NodesWouldBreak): the node would serve no GPU then.
[[nodiscard]] std::vector<NodeDifference> announced_differences(World& world, const PlannerSettings& settings,
                                                                WallTime now);

// Nodes that have not shown their profile since the operator first read them, and are skipped: `rollout start --adopt`
// rolls them out. After differences().
[[nodiscard]] std::vector<std::string> drift_left_alone(const World& world, const PlannerSettings& settings);

// The keys of a ConfigMap as a person is about to write them. `whole`: all other keys are removed, except the
// operator's.
struct GivenText {
  ObjectKey config_map;
  std::map<std::string, std::string> keys;
  bool whole = false;
};
// Records the present state of the fleet, then puts the text into the world. Errors (`invalid`): no device plugin
// mounts that ConfigMap, or it is immutable.
[[nodiscard]] k8s::Result<void> apply_given(World& world, const PlannerSettings& settings, const GivenText& given,
                                            WallTime now);

// Which of a node's pods, as just listed, block its change, and whether it is cordoned.
void find_obstacles(NodeDifference& difference, const World& world, const PlannerSettings& settings,
                    const NodeConsumers& consumers);

// --- Which nodes would be changed first, and what the others wait for: for `rollout start --dry-run`.

struct FirstStarts {
  std::set<std::string> nodes;
  // The policy's other nodes that need a change -> what each waits for.
  std::map<std::string, std::string> waits;
};
// What the operator plans in this world once its inputs have settled, and the kubelets have the text of each key.
// `consumers`: of nodes that must not be changed while pods use them, as just listed; a node that is left out counts as
// unused. `world` is changed: the nodes that start are in their change then.
[[nodiscard]] FirstStarts first_starts(World& world, const PlannerSettings& settings, WallTime now,
                                       const std::map<std::string, NodeConsumers>& consumers, std::string_view policy);

}  // namespace gso
