// Records what was verified, what failed and what a person has stopped.
#pragma once

#include "reconcilers/fleet/pass.h"

namespace gso {

void plan_outcomes(Pass& pass);  // Writes verified and failed revisions into the record.

}  // namespace gso
