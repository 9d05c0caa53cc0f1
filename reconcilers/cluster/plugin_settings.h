// What differs between device plugins: releases, settings, overrides of profiles, and those that a cloud manages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/profile/profile.h"

namespace gso {

// --- What a release of the device plugin can do.

// MPS came with v0.15.0; an unknown release counts as newer.
[[nodiscard]] bool knows_mps(const PluginVersion& version);

// Whether a node's label can select an MPS profile that is not the default. From v0.18.2 on every start applies the
// default first, and the sidecar cannot signal the MPS daemon after it. `signal_fixed`: new MPS pods name a process
// that exists (PlannerSettings::mps_signal_fixed); that helps from v0.20.0 on, since before the sidecar panics in the
// host's PID namespace. An unknown release counts as the worst.
[[nodiscard]] bool loads_mps_by_label(const PluginVersion& version, bool signal_fixed);

// Whether Allocate refuses a request for more than one replica of a shared resource. An explicit `false` under mps is
// honoured from v0.20.0 on; an unknown release counts as older.
[[nodiscard]] bool refuses_requests_above_one(const Profile& profile, const PluginVersion& version);

// Why a pod that requests `count` of `resource` (its original name) would be refused by the plugin, and end as Failed
// with UnexpectedAdmissionError; nullopt if the plugin would accept it.
[[nodiscard]] std::optional<std::string> request_refusal(const Profile& profile, const PluginVersion& version,
                                                         std::string_view resource, std::int64_t count);

// --- Where people set the default key of a device plugin and the ConfigMap that it mounts: by what installed the
// plugin.

// The first device plugin of the installation, of those that each serve other nodes; null: it has none.
[[nodiscard]] const Operand* first_plugin(const PluginInstallation& installation);

// "spec.devicePlugin.config.default of ClusterPolicy cluster-policy": where the installation's default key is set.
[[nodiscard]] std::string default_key_setting(const PluginInstallation& installation);

// Sets the default key there.
[[nodiscard]] std::string set_default_key_command(const PluginInstallation& installation, std::string_view key);

// Why labels cannot select MPS profiles of that plugin (loads_mps_by_label() is false), and the choices, with what to
// type for each. `selects`: "selects", or "alone can select", before the keys, with nodes "a (n01)". `key`: the one
// that could be the default; empty: there are several.
[[nodiscard]] std::string one_mps_profile_text(const PluginInstallation& installation, const Operand& plugin,
                                               std::string_view selects, const std::vector<std::string>& keys,
                                               std::string_view key);

// For a plugin without profiles: sets which ConfigMap it mounts, and its default key. `plugin`: its DaemonSet on the
// node; may be null.
[[nodiscard]] std::string set_config_map_command(const PluginInstallation& installation, const Operand* plugin);

// --- A flag or environment variable of the plugin's DaemonSets overrides the profile; errors of the overridden field
// do not count. Source: UpdateFromCLIFlags of the device plugin (v0.20.0).

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

// --- A device plugin that a cloud provider runs from a DaemonSet of its own: GKE's. It reads no profile, so the
// operator has nothing to change there.

// The DaemonSet whose pods serve the node's GPUs; nullopt: none.
[[nodiscard]] std::optional<ObjectKey> cloud_plugin_on(const World& world, const Node& node);

}  // namespace gso
