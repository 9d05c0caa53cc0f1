// Whether a deferral on a node still applies, and for how long a change is deferred.
#pragma once

#include <optional>
#include <string_view>

#include "reconcilers/node/assess.h"
#include "reconcilers/node/node_change.h"

namespace gso {

// The node's deferral, if it is of its present target and nobody has asked for another attempt since (`retry`: the
// policy's, retry.h). Whether its time has passed is another question: rollout/deferrals.h.
[[nodiscard]] std::optional<Deferral> applying_deferral(const Node& node, const NodeAssessment& assessment,
                                                        std::string_view retry);

// For as long as the policy lets a node wait for its workloads (idleTimeout). A node whose policy has no patience,
// which is less than ten seconds, is left alone for a minute: it is not cordoned and uncordoned in every pass.
[[nodiscard]] Duration deferral_length(Duration idle_timeout);

}  // namespace gso
