// Whether the inputs of an installation have come to rest: its ConfigMap, its DaemonSets, and what its ClusterPolicy
// announces for them.
#pragma once

#include <string>

#include "reconcilers/fleet/pass.h"

namespace gso {

// How long the DaemonSets may differ from their ClusterPolicy before that is no update of the GPU Operator any more.
inline constexpr Duration kDifferencePatience = std::chrono::minutes(2);
// Seen while they differ as they do now.
[[nodiscard]] TimerKey differing_timer(const PluginInstallation& set);
// They have differed for longer than that: which DaemonSets, from what, and how to go on. Empty: not so.
[[nodiscard]] std::string lasting_difference(const Pass& pass, const PluginInstallation& set);
// The inputs of an operand set are as they were: what its pods would load, by signature.
[[nodiscard]] TimerKey settled_timer(const Pass& pass, std::size_t set);

}  // namespace gso
