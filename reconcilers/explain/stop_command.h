// What ends the stop of a rollout.
#pragma once

#include <string>

#include "reconcilers/rollout/rollout_view.h"

namespace gso {

// The command that lifts the first pause of the rollout, for whoever decides that: of its policy, of its ConfigMap, or
// its own. Empty: it is not paused by a switch.
[[nodiscard]] std::string resume_command(const RolloutView& rollout);

// The command that ends what a person has to end: a pause, a missing approval, an abort or an undo. Empty: nothing of
// that kind stops the rollout.
[[nodiscard]] std::string stop_command(const RolloutView& rollout);

}  // namespace gso
