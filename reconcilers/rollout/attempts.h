// Attempts: a revision that was left, or had ended before a newer template came, and comes back is a new attempt, with
// switches and times of its own.
#pragma once

#include "reconcilers/fleet/pass.h"

namespace gso {

// Another revision has taken the rollout's place since it began. Where a switch of it was set, the record decides;
// else its status remembers that.
[[nodiscard]] bool was_left(const Index& index, const SharingRollout& rollout);
[[nodiscard]] bool says_left(const SharingRollout& rollout);  // The status does.
// Its revision has come back, or it had ended when a new template came (under OnDelete), and nodes wait for it. What a
// person took back stays so.
[[nodiscard]] bool begins_anew(const Index& index, const Unit& unit, const SharingRollout& rollout);

}  // namespace gso
