// Why a node is in its state: its target and who chose it, what it has loaded and how that is known, what it must show
// and shows, and what blocks it. Pure functions of the objects.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/explain/shown_state.h"
#include "reconcilers/explain/slices.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

struct NodeExplanation {
  std::string node;
  ShownState shown;
  // The code of the check that blocks the node; empty: it is not blocked, or something else blocks it.
  std::string check;
  std::string remedy;  // How to fix that, in general; `next` is the command.
  // "GPU Operator (cluster-policy)", "nos", …; empty: no provider serves GPUs on the node.
  std::string provider;
  std::string plugin;  // "gpu-operator/nvidia-device-plugin-daemonset v0.17.1"
  std::string policy;
  bool policy_is_gone = false;  // It was deleted, and its last spec still governs the node.
  std::string profile;          // "<configmap>/<key>"
  std::string source;           // Who chose it: "label nvidia.com/device-plugin.config=t4, written by policy p"
  std::string strategy;         // "mps", with replicas: "mps, nvidia.com/gpu x 4"
  std::string loaded;           // Revision, and how it is known: "v1-… (annotation)"
  std::string target;
  struct Row {
    std::string what;  // A label or resource.
    std::string expected;
    std::string observed;
    [[nodiscard]] bool fits() const { return expected == observed; }
  };
  std::vector<Row> rows;
  std::map<std::string, std::int64_t> replicas;  // Of each device, by shared resource.
  std::map<std::string, std::int64_t> capacity;
  std::map<std::string, std::int64_t> allocatable;
  // Operands and GPU pods, for programs.
  struct NodePod {
    std::string ns;
    std::string name;
    std::string component;  // "plugin", "gfd", "mps"; empty: a GPU pod.
    bool ready = false;
    std::map<std::string, std::int64_t> requests;
  };
  std::vector<NodePod> pods;
  std::vector<GpuBar> slices;          // Of a node whose GPUs are partitioned.
  std::vector<std::string> notes;      // Cordons, holds, a change in progress: for people.
  std::vector<std::string> operands;   // "plugin: nvidia-…-x7k2p Running, ready"
  std::vector<std::string> consumers;  // "team-a/train-0: nvidia.com/gpu=1"
  // The planners' findings about this node and its setup, and that of a cordon by somebody else.
  std::vector<Finding> findings;
  // What to do about them, by reason.
  std::map<std::string, std::string, std::less<>> remedies;
  // What can end a wait for pods, each with whoever decides it (pod_choices.h). Empty: there is nothing to decide.
  std::vector<std::string> options;
  // The one command to continue with; empty: no action is needed.
  std::string next;
};

// After index.refresh(). `findings`: all findings of the planners about the cluster. nullopt: the node does not exist.
[[nodiscard]] std::optional<NodeExplanation> explain_node(const Snapshot& snapshot, FleetIndex& index,
                                                          const std::vector<Finding>& findings, std::string_view name);

// The finding says that a node does not show its profile.
[[nodiscard]] bool reports_drift(const Finding& finding);

// What every reconciler finds now, with drift as an error. `index` is refreshed.
[[nodiscard]] std::vector<Finding> all_findings(const Snapshot& snapshot, FleetIndex& index);

}  // namespace gso
