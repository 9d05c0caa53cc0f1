// What the operator decides by and a command could not read: nothing is concluded from its absence.
#pragma once

#include <string>

#include "reconcilers/model/snapshot.h"

namespace gso {

// SharingPolicies or SharingRollouts could not be read, because of missing permissions for example. A kind that the
// cluster does not have was read: it has no objects.
[[nodiscard]] bool sharing_objects_unread(const World& world);
// The same of the operator's record, the state ConfigMap.
[[nodiscard]] bool record_unread(const World& world, const PlannerSettings& settings);
// Which of these could not be read, and what is unknown because of it; empty: all were read.
[[nodiscard]] std::string unread_decisions(const World& world, const PlannerSettings& settings);

}  // namespace gso
