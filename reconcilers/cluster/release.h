// What a release of the device plugin can do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "reconcilers/cluster/discovery.h"
#include "reconcilers/profile/profile.h"

namespace gso {

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

}  // namespace gso
