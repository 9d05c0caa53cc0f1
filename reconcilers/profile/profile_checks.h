// What the components make of a decoded document: what they exit on whatever the hardware, and what they drop.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/profile/profile.h"
#include "reconcilers/profile/profile_decoder.h"

namespace gso {

// Adds the components' complaints to `diagnostics` and returns the profile as upstream holds it in memory, with
// `rename`, `devices` and `resources` dropped.
[[nodiscard]] Profile check_profile(const RawProfile& raw, std::vector<Diagnostic>& diagnostics);

// What would be right where the components do not take that value for a setting of words ("flags.migStrategy"); a
// list's words stand between commas. nullopt where they take it.
[[nodiscard]] std::optional<std::string> word_complaint(std::string_view path, std::string_view text);

}  // namespace gso
