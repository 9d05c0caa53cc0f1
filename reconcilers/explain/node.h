// Why a node is in its state: what it should run and who says so, what it has loaded and how that is known, what it
// must show and what it shows, and what stands in the way. Pure functions of the objects.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/node/assess.h"

namespace gso {

// What tables say of a node.
struct ShownState {
  std::string state;  // "current", "Blocked(OutsideWindow)", "Drift", "NoPlugin", …
  std::string message;
};
// The state in a word, as metrics count it: UpToDate are those that a policy counts so.
[[nodiscard]] std::string_view state_name(const NodeAssessment& assessment);

// After index.refresh(). Where the namespace of the node's device plugin could not be read, its state is not known
// (kUnknown), whatever the assessment made of what is missing.
[[nodiscard]] ShownState shown_state(const World& world, const FleetIndex& index, const Node& node);
inline constexpr std::string_view kUnknown = "Unknown";
// A revision for people: "(invalid)" for the one that stands for a text that no plugin takes (kInvalidRevision).
[[nodiscard]] std::string shown_revision(std::string_view revision);
// Who keeps a node that is in flight or at the back of the queue, as the operator says it in the SharingRollout ("waits
// for team/job-1"); empty where nobody does, or where it is not among the first 50 that are named there.
[[nodiscard]] std::string blocking_pods_of(const World& world, std::string_view node);

struct NodeExplanation {
  std::string node;
  ShownState shown;
  std::string check;     // The code of the check that blocks it; empty: it is not blocked, or by something else.
  std::string remedy;    // What to do about that, in general; `next` is the command.
  std::string provider;  // "GPU Operator (cluster-policy)", "nos", …; empty: nobody serves GPUs there.
  std::string plugin;    // "gpu-operator/nvidia-device-plugin-daemonset v0.17.1"
  std::string policy;
  std::string profile;   // "<configmap>/<key>"
  std::string source;    // Who chose it: "label nvidia.com/device-plugin.config=t4, written by policy p"
  std::string strategy;  // "mps", with replicas: "mps, nvidia.com/gpu x 4"
  std::string loaded;    // Revision, and how it is known: "v1-… (annotation)"
  std::string target;
  struct Row {
    std::string what;  // A label or resource.
    std::string expected;
    std::string observed;
    [[nodiscard]] bool fits() const { return expected == observed; }
  };
  std::vector<Row> rows;
  std::vector<std::string> notes;      // Cordons, holds, a change under way: for people.
  std::vector<std::string> operands;   // "plugin: nvidia-…-x7k2p Running, ready"
  std::vector<std::string> consumers;  // "team-a/train-0: nvidia.com/gpu=1"
  std::vector<Finding> findings;       // Of the planners, about this node; and of its setup.
  std::string next;                    // The one command to go on with; empty: nothing is to be done.
};

// After index.refresh(). `findings`: all that the planners say of the cluster. nullopt: there is no such node.
[[nodiscard]] std::optional<NodeExplanation> explain_node(const Snapshot& snapshot, FleetIndex& index,
                                                          const std::vector<Finding>& findings, std::string_view name);

// What every reconciler finds now. `index` is refreshed.
[[nodiscard]] std::vector<Finding> all_findings(const Snapshot& snapshot, FleetIndex& index);

}  // namespace gso
