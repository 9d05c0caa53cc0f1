// All nodes in a change, at the cost of those that need something: the others are skipped until their next date.
#pragma once

#include "reconcilers/fleet/pass.h"

namespace gso {

void plan_changes_in_progress(Pass& pass);

}  // namespace gso
