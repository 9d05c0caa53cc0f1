// The timers that several planners of one pass read, named once, before any of them reads one. So no timer runs because
// somebody asked for it, or stops because nobody did: a soak goes on while its rollout is paused.
//
// Timers that one chain of steps owns are named there (model/ages.h): those of a node's change (node/node_step.h), of
// stuck pods, of nodes that are left, of unused keys, and KAI's.
#pragma once

#include "reconcilers/fleet/pass.h"

namespace gso {

// While the fleet has no record, or one that cannot be read, no node and no rollout waits: most timers do not run.
// Those that say which text a node can have read run on beside an unreadable one.
void declare_timers(Pass& pass);

}  // namespace gso
