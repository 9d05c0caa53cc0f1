// What a change of the configuration would do to each node, before anybody makes it: for `rollout diff`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/fleet/fleet.h"
#include "reconcilers/fleet/pass.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/node/assess.h"

namespace gso {

struct NodeDifference {
  std::string node;
  std::string policy;
  std::string profile;  // "<configmap>/<key>" that it goes to.
  std::string from;     // Revisions; `from` is empty where it is not known.
  std::string to;
  ChangeCause cause = ChangeCause::none;
  Transition transition = Transition::none;
  std::vector<Component>
      restarts;  // Whose pods are deleted; none where a label is moved and they reload by themselves.
  bool cordons = false;
  Drain drain = Drain::nothing;                // What must be true of its consumers first.
  std::map<std::string, std::int64_t> serves;  // Of each resource, afterwards.
  WorkloadMode workloads = WorkloadMode::wait_for_idle;
  std::string_view blocked;  // Why it would not be changed; with `message`.
  std::string message;
  bool in_flight =
      false;  // It is being changed now: `restarts` are the pods that are still to go; `message`: who keeps it.
  // Consumers that would break, or that ask for more than is left ("namespace/name"): filled by find_obstacles().
  std::vector<std::string> blocked_by_pods;
};

// Where the fleet has no record: the one that the operator would write at first sight, so that drift and doubts show as
// they would once it is installed. True where one was assumed. `index` is refreshed.
bool assume_baseline(World& world, FleetIndex& index, const PlannerSettings& settings, WallTime now);

// Nodes that would change in that world, by name, and those that could not (`blocked`). A fleet without a record counts
// as running what its pods have loaded by the present texts: `world` then gets the record that the operator would
// write.
[[nodiscard]] std::vector<NodeDifference> differences(World& world, const PlannerSettings& settings, WallTime now);

// Nodes that do not show their profile since they were seen first, and are left alone: `rollout start --adopt` rolls
// them. After differences().
[[nodiscard]] std::vector<std::string> drift_left_alone(const World& world, const PlannerSettings& settings);

// The keys of a ConfigMap as somebody is about to write them. `whole`: the others go (but those of ours).
struct GivenText {
  ObjectKey config_map;
  std::map<std::string, std::string> keys;
  bool whole = false;
};
// Takes the record of the fleet as it is, then puts the text into the world. Errors (`invalid`): no device plugin
// mounts that ConfigMap, or it is immutable.
[[nodiscard]] k8s::Result<void> apply_given(World& world, const PlannerSettings& settings, const GivenText& given,
                                            WallTime now);

// Which of a node's pods, as just listed, are in the way of its difference.
void find_obstacles(NodeDifference& difference, const World& world, const PlannerSettings& settings,
                    const NodeConsumers& consumers);

}  // namespace gso
