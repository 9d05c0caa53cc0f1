// The plan, and the sums that are shown, depend on what the stores hold, not on how they came to hold it.
#pragma once

#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test {

// The index that has followed the events, a new index, and a new index over stores that hand out the same objects in
// the opposite order make the same plan. Keeps no timer.
void check_same_plan(FleetModel& fleet);

// What the index has summed up for metrics, node by node as they changed, is a full count of the nodes. After a plan.
void check_shown_sums(const FleetModel& fleet);

}  // namespace gso::test
