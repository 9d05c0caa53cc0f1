// Which pods of a node use its GPUs, and which the kubelet rejected there.
#pragma once

#include "reconcilers/model/snapshot.h"

namespace gso {

// Its template has a container of the device plugin, GFD or an MPS control daemon.
[[nodiscard]] bool runs_operand(const DaemonSet& daemonset);
// Pods of one node as listed by spec.nodeName: true for a pod that uses GPUs and is neither finished nor an operand.
[[nodiscard]] bool is_gpu_consumer(const Pod& pod, const World& world);
// A pod that the kubelet rejected because no plugin served its GPUs (UnexpectedAdmissionError), that its controller has
// replaced, in a namespace where the operator is allowed to remove such pods.
[[nodiscard]] bool is_rejected(const Pod& pod, const PlannerSettings& settings);

}  // namespace gso
