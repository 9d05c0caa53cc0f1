// Whether the inputs of an installation have settled: its ConfigMap, its DaemonSets, and what its ClusterPolicy
// announces for them.
#pragma once

#include <string>

#include "reconcilers/fleet/pass.h"

namespace gso {

// How long the DaemonSets can differ from their ClusterPolicy before the operator stops treating that as an update by
// the GPU Operator.
inline constexpr Duration kDifferencePatience = std::chrono::minutes(2);
// Runs while its ClusterPolicy announces what they do not have, and both stay as they are.
[[nodiscard]] TimerKey differing_timer(const PluginInstallation& installation);
// The DaemonSets have differed for longer than that: which DaemonSets, from what, and how to continue. Empty: they have
// not.
[[nodiscard]] std::string lasting_difference(Pass& pass, const PluginInstallation& installation);
// Runs while the inputs of an installation are unchanged: what its pods would load, by signature.
[[nodiscard]] TimerKey settled_timer(const Pass& pass, std::size_t installation);

}  // namespace gso
