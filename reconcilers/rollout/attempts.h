// Attempts: if another revision replaces a rollout, or the rollout ended before a newer template arrived, and the
// revision later returns, that is a new attempt with its own switches and times.
#pragma once

#include "reconcilers/fleet/pass.h"

namespace gso {

// Another revision has replaced the rollout since it began. If one of its switches was set, the record decides;
// otherwise its status does.
[[nodiscard]] bool was_left(const Index& index, const SharingRollout& rollout);
[[nodiscard]] bool says_left(const SharingRollout& rollout);  // According to its status.
// Nodes wait for the rollout although another revision had replaced it, or although it had ended when a new template
// arrived (under OnDelete). An undo stays in effect.
[[nodiscard]] bool begins_anew(const Index& index, const ProfileRollout& profile_rollout,
                               const SharingRollout& rollout);

}  // namespace gso
