// Why a pod that wants GPUs is Pending, rejected or slow: across the device plugin, MPS and KAI. Pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/error.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/severity.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

struct PodCause {
  Severity severity = Severity::error;  // error: it keeps the pod from running; warning: it makes it slow, or may.
  std::string code;                     // CamelCase, stable.
  std::string text;                     // For people.
  std::string command;                  // The one that mends it, or shows where to look. May be empty.
};

struct PodExplanation {
  std::string pod;               // "namespace/name"
  std::string state;             // "Pending, no node has been chosen", "Running on gpu-1", …
  std::string asks;              // "nvidia.com/gpu=2", "a share of 0.5 of a GPU, from KAI"; empty: no GPU.
  std::vector<PodCause> causes;  // The one that decides first.
  struct NodeVerdict {
    std::string node;
    std::string verdict;  // Why the pod is not placed there.
  };
  std::vector<NodeVerdict> nodes;  // GPU nodes, for a pod that no node has.
  // Where nodes may not be read (explain_pod_alone): "FailedScheduling: 0/3 nodes …", and the namespace's GPU pods.
  std::vector<std::string> events;
  std::vector<std::string> beside;
  [[nodiscard]] bool hindered() const;  // Some cause is an error.
};

// `json`: the pod as the API server has it. After index.refresh(). `findings`: all that the planners say. Errors
// (reason `decode`): the text is no pod.
[[nodiscard]] k8s::Result<PodExplanation> explain_pod(const Snapshot& snapshot, FleetIndex& index,
                                                      const std::vector<Finding>& findings, std::string_view json);

// What else somebody may read who has rights in one namespace only.
struct PodSurroundings {
  std::vector<std::string> events;  // Of the pod, for people, newest last.
  std::vector<Pod> pods;            // Of its namespace.
};
// The same for somebody who may read neither nodes nor device plugins: what the pod says of itself, its scheduler's
// words, its Events, and who of its namespace asks for GPUs. Nothing is concluded about nodes.
[[nodiscard]] k8s::Result<PodExplanation> explain_pod_alone(const PodSurroundings& surroundings,
                                                            const PlannerSettings& settings, std::string_view json);

}  // namespace gso
