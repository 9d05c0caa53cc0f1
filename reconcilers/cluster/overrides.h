// What the plugin's DaemonSets say themselves, by flag or environment variable, beats the profile: its errors there do
// not count. Source: UpdateFromCLIFlags of the device plugin (v0.20.0).
#pragma once

#include <string>
#include <vector>

#include "reconcilers/cluster/discovery.h"
#include "reconcilers/cluster/profile_cache.h"
#include "reconcilers/profile/profile.h"

namespace gso {

// Codes of errors about settings that no component takes from the profile, because every one that would exit has a
// value of its own that works. `gfd` may be null.
[[nodiscard]] BeatenErrors beaten_errors(const Operand& plugin, const Operand* gfd);

// What the DaemonSet says itself and its component exits on at start, on every node and with every profile; one
// sentence each, with the variable or flag, the value and what would be right. Empty where all is well, and where the
// template does not tell. Source: validateFlags of the device plugin and of GFD, and how urfave/cli reads variables
// (v0.20.0).
[[nodiscard]] std::vector<std::string> wrong_settings(const Operand& operand);

// The plugin has a host path for MPS. An empty MPS_ROOT counts as set, and beats flags.mpsRoot.
[[nodiscard]] bool has_mps_root(const Operand& plugin, const Profile& profile);

}  // namespace gso
