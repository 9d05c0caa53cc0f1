// S8: replicas multiply nvidia.com/gpu, but KAI's reservations require that one nvidia.com/gpu is one device.
#pragma once

#include "reconcilers/profile/profile.h"

namespace gso {

// KAI must not share GPUs of a node with this profile. Null: the node has no valid profile, which creates no replicas.
[[nodiscard]] bool excludes_kai(const Profile* profile);

}  // namespace gso
