// Whether a deferral on a node still applies, and for how long a change is deferred.
#pragma once

#include <optional>

#include "reconcilers/node/assess.h"
#include "reconcilers/node/node_change.h"

namespace gso {

// The node's deferral, if it is of its present target and nobody has given its workloads another turn since: by
// another attempt (retry.h), or by a policy that evicts them now. `policy`: the one that governs the node; null: none.
[[nodiscard]] std::optional<Deferral> applying_deferral(const Node& node, const NodeAssessment& assessment,
                                                        const SharingPolicy* policy);

// For as long as the policy lets a node wait for its workloads (idleTimeout). A node whose policy has no patience,
// which is less than ten seconds, is left alone for a minute: it is not cordoned and uncordoned in every pass.
[[nodiscard]] Duration deferral_length(Duration idle_timeout);

}  // namespace gso
