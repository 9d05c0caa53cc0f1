// Why a pod that wants GPUs is Pending, rejected or slow: across the device plugin, MPS and KAI. Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/error.h"
#include "reconcilers/explain/commands.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/reasons/reason.h"

namespace gso {

struct PodCause {
  // error: it prevents the pod from running; warning: it makes the pod slow, or might.
  Severity severity = Severity::error;
  Reason reason = {};
  // Its command changes nothing but the template of the pod's own workload: what others own (nodes, their labels,
  // taints and cordons, KAI's configuration) is only shown.
  Cure cure = {};
};

[[nodiscard]] PodCause pod_cause(Severity severity, std::string_view code, std::string message, Cure cure = {});

inline constexpr std::string_view kNoNodesGiven = "NoNodesGiven";

struct PodExplanation {
  std::string pod;    // "namespace/name"
  std::string state;  // "Pending, no node has been chosen", "Running on gpu-1", …
  bool pending = false;
  std::string asks;  // "nvidia.com/gpu=2", "a share of 0.5 of a GPU, from KAI"; empty: no GPU.
  std::map<std::string, std::int64_t> requests;  // Of nvidia.com/*, as the scheduler counts them.
  std::vector<PodCause> causes;                  // The deciding cause first.
  struct NodeVerdict {
    std::string node;
    std::string verdict;  // Why the pod is not placed there.
    std::string code;     // The code of the cause that this would be.
  };
  // For a pod without a node: the GPU nodes, and those without GPUs if it selects only such. The nearest to running the
  // pod first: the first cause is about these.
  std::vector<NodeVerdict> nodes;
  std::vector<SharedGpu> shared_gpus;  // KAI's, with a part for this pod.
  // If nodes cannot be read (explain_pod_alone): "FailedScheduling: 0/3 nodes …", and the namespace's GPU pods.
  std::vector<std::string> events;
  std::vector<std::string> beside;
  [[nodiscard]] bool hindered() const;     // Some cause is an error.
  [[nodiscard]] bool lacks_nodes() const;  // No Node was given, so the nodes of a pod that waits are not checked.
};

// `json`: the pod as the API server has it. Errors (reason `decode`): the text is not a pod. `index` is refreshed.
[[nodiscard]] k8s::Result<PodExplanation> explain_pod(const Snapshot& snapshot, FleetIndex& index,
                                                      std::string_view json);

// What else a user with rights in one namespace only can read.
struct PodSurroundings {
  std::vector<std::string> events;  // The pod's Events, for people, newest last.
  std::vector<Pod> pods;            // The pods of its namespace.
  WallTime now{};
};
// The same for a user who can read neither nodes nor device plugins: the pod's own fields, the scheduler's message, its
// Events, and the pods of its namespace that request GPUs. It draws no conclusion about nodes.
[[nodiscard]] k8s::Result<PodExplanation> explain_pod_alone(const PodSurroundings& surroundings,
                                                            const PlannerSettings& settings, std::string_view json);

// --- A workload whose pods do not exist because the API server refused to create them: a ResourceQuota, another
// admission rule, a ServiceAccount that is missing. No pod says so; the workload's status or its Events do.

// A controller of Kubernetes that creates pods.
struct PodCreator {
  std::string kind;  // Deployment, ReplicaSet, StatefulSet, DaemonSet, Job
  std::string json;  // As the API server has it.
  // The newest of its Events with the reason FailedCreate; empty: none, or its status has a condition instead.
  std::string failure;
};

// `asked`: the name that was asked for, "namespace/name". nullopt: the workload reports no pod that it cannot create.
[[nodiscard]] std::optional<PodExplanation> explain_uncreated_pod(const PodCreator& creator, const std::string& asked);

}  // namespace gso
