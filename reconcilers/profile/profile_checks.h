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

// The values that are allowed, if the components refuse this value of a setting with fixed words ("flags.migStrategy");
// the words of a list are separated by commas. nullopt if they accept it.
[[nodiscard]] std::optional<std::string> word_complaint(std::string_view path, std::string_view text);

}  // namespace gso
