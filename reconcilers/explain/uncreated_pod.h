// A workload whose pods do not exist because the API server refused to create them: a ResourceQuota, another admission
// rule, a ServiceAccount that is missing. No pod says so; the workload's status or its Events do.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "reconcilers/explain/pod.h"

namespace gso {

// A controller of Kubernetes that creates pods.
struct PodCreator {
  std::string kind;     // Deployment, ReplicaSet, StatefulSet, DaemonSet, Job
  std::string json;     // As the API server has it.
  std::string failure;  // The newest of its Events with the reason FailedCreate; empty: none, or not needed.
};

// The controllers of the other kinds write a condition into the workload's status.
[[nodiscard]] bool reports_failures_in_events(std::string_view kind);

// `asked`: the name that was asked for, "namespace/name". nullopt: the workload reports no pod that it cannot create.
[[nodiscard]] std::optional<PodExplanation> explain_uncreated_pod(const PodCreator& creator, const std::string& asked);

}  // namespace gso
