// A flag or environment variable of the plugin's DaemonSets overrides the profile; errors of the overridden field do
// not count. Source: UpdateFromCLIFlags of the device plugin (v0.20.0).
#pragma once

#include <string>
#include <vector>

#include "reconcilers/cluster/discovery.h"
#include "reconcilers/cluster/profile_cache.h"
#include "reconcilers/profile/profile.h"

namespace gso {

// Codes of errors about settings that no component reads from the profile, because every component that would exit has
// its own valid value. `gfd` may be null.
[[nodiscard]] OverriddenErrors overridden_errors(const Operand& plugin, const Operand* gfd);

// Settings of the DaemonSet itself on which its component exits at start, on every node and with every profile; one
// sentence each, with the variable or flag, its value and what is valid. Empty if all is well, and if the template does
// not contain the value. Source: validateFlags of the device plugin and of GFD, and how urfave/cli reads variables
// (v0.20.0).
[[nodiscard]] std::vector<std::string> wrong_settings(const Operand& operand);

// The plugin has a host path for MPS. An empty MPS_ROOT counts as set and overrides flags.mpsRoot.
[[nodiscard]] bool has_mps_root(const Operand& plugin, const Profile& profile);

}  // namespace gso
