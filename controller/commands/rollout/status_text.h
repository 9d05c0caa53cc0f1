// `rollout status` as a text, of a cluster that has been read already.
#pragma once

#include <string>

#include "controller/reading/cluster_reader.h"
#include "k8sclient/clock.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// What `rollout status` prints: each rollout that is in progress or stopped, what waits, and what to type; without the
// CRDs that they are missing (no JSON). Empty: whether there are rollouts is unknown, because they cannot be read.
[[nodiscard]] std::string rollout_status_text(const ClusterView& view, const PlannerSettings& settings,
                                              k8s::Clock* clock, bool json);

}  // namespace gso
