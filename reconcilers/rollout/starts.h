// Which nodes start now. A rollout starts nodes while every gate (gates.h) is open and a slot is free in cluster,
// policy and group.
#pragma once

#include "reconcilers/fleet/pass.h"

namespace gso {

void plan_starts(Pass& pass);

}  // namespace gso
