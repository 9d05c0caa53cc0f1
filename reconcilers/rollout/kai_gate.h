// S8, checked before the operator replaces pods of a node that serves or will serve replicas: KAI's reservations
// require that one nvidia.com/gpu is one device.
#pragma once

#include <optional>
#include <string>

#include "reconcilers/fleet/pass.h"

namespace gso {

// nullopt: KAI does not use the node's GPUs, or the node's profile creates no replicas. Requests in `pass` what is not
// known, and another pass.
[[nodiscard]] std::optional<KaiHindrance> kai_hindrance(Pass& pass, const std::string& node,
                                                        const NodeAssessment& assessment);

// Reports the same as a finding about the node; true if KAI hinders the change.
bool report_kai_hindrance(Pass& pass, const std::string& node, const NodeAssessment& assessment);

}  // namespace gso
