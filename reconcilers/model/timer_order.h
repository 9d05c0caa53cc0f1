// The timers that the parts of a plan have named, put in order.
#pragma once

#include <vector>

#include "reconcilers/model/timer.h"

namespace gso {

// Sorts the timers and keeps one of each. Planners name thousands of them for a fleet in change, kind by kind nearly in
// order: the time that it takes is in proportion to their number then.
void put_in_order(std::vector<TimerKey>& timers);

}  // namespace gso
