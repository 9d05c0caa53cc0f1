// S8, asked before pods of a node that serve or will serve replicas are replaced: KAI's reservations rest on one unit
// being one device.
#pragma once

#include <optional>
#include <string>

#include "reconcilers/fleet/pass.h"

namespace gso {

// nullopt: nothing of KAI is in the way, or the node's profile makes no replicas. Asks in `pass` for what is not known,
// and for another look.
[[nodiscard]] std::optional<KaiHindrance> kai_hindrance(Pass& pass, const std::string& node,
                                                        const NodeAssessment& assessment);

// The same as a finding about the node; true when there was one.
bool report_kai_hindrance(Pass& pass, const std::string& node, const NodeAssessment& assessment);

}  // namespace gso
