// Which nodes start now. A rollout starts nodes while every gate (gates.h) is open and a slot is free in cluster,
// policy and group.
#pragma once

#include "reconcilers/fleet/pass.h"
#include "reconcilers/rollout/slots.h"

namespace gso {

// Takes the slots of the nodes that start.
void plan_starts(Pass& pass, Slots& slots);

}  // namespace gso
