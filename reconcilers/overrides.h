// What the plugin's DaemonSets say themselves, by flag or environment variable, beats the profile: its errors there do
// not count. Source: UpdateFromCLIFlags of the device plugin (v0.20.0).
#pragma once

#include "reconcilers/discovery.h"
#include "reconcilers/profile/profile.h"
#include "reconcilers/profile_book.h"

namespace gso {

// Codes of errors about settings that no component takes from the profile, because every one that would exit has a
// value of its own that works. `gfd` may be null.
[[nodiscard]] BeatenErrors beaten_errors(const Operand& plugin, const Operand* gfd);

// The plugin has a host path for MPS. An empty MPS_ROOT counts as set, and beats flags.mpsRoot.
[[nodiscard]] bool has_mps_root(const Operand& plugin, const Profile& profile);

}  // namespace gso
