// The plan, and the sums that are shown, depend on what the stores hold, not on how they came to hold it.
#pragma once

#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test {

// The same objects, put into each store in the opposite order: it hands them out in another order.
[[nodiscard]] World reversed(const World& world);

// The index that has followed the events, a new index, and a new index over reversed stores make the same plan.
void check_same_plan(FleetModel& fleet);

// What the index has summed up for metrics, node by node as they changed, is a full count of the nodes. After a plan.
void check_shown_sums(const FleetModel& fleet);

}  // namespace gso::test
