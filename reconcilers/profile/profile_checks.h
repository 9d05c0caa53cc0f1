// What the components make of a decoded document: what they exit on whatever the hardware, and what they drop.
#pragma once

#include <vector>

#include "reconcilers/profile/profile.h"
#include "reconcilers/profile/profile_decoder.h"

namespace gso {

// Adds the components' complaints to `diagnostics` and returns the profile as upstream holds it in memory, with
// `rename`, `devices` and `resources` dropped.
[[nodiscard]] Profile check_profile(const RawProfile& raw, std::vector<Diagnostic>& diagnostics);

}  // namespace gso
