// What follows once `rollout undo` has restored a text.
#pragma once

#include <iosfwd>

#include "controller/commands/rollout/undo_target.h"
#include "controller/commands/rollout/verbs.h"

namespace gso {

// Which nodes change to the text by themselves and how to prevent that, or what they wait for. `call.world` has the
// text. Nothing is printed if no node needs it.
void print_what_follows(const RolloutCall& call, const Undo& undo, std::ostream& out);

}  // namespace gso
