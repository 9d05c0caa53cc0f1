// A profile against one node: its GPUs, the environment of its operands, and the release of the plugin that serves it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reconcilers/cluster/discovery.h"
#include "reconcilers/profile/expected.h"
#include "reconcilers/profile/profile.h"

namespace gso {

// The profile as it works on a node whose operands have these environment variables: MIG_STRATEGY on the DaemonSet
// beats flags.migStrategy, even where the variable is empty.
[[nodiscard]] Profile with_environment(Profile profile, const std::map<std::string, std::string>& environment);

// What MPS comes to where MIG is enabled, after the words that say where it is.
inline constexpr std::string_view kMpsWithMig =
    "with MPS, GFD exits there and the labels go stale; disable MIG or use time-slicing";

// What goes wrong on a node with these GPUs. Errors: a component would exit or never serve (codes MIGEnabled,
// MPSWithMixedMIG, MPSReplicasAboveMaximum, MPSMatchesNothing, MIGNotUniform). Warnings: entries
// that no device has (NameMatchesNothing), labels that NFD drops (LabelDropped), GPUs of different models
// (LabelsUnreliable). The path is that of the field; there is no line.
[[nodiscard]] std::vector<Diagnostic> check_on_node(const Profile& profile, const std::vector<Device>& devices);

// Defects of the plugin's release that matter for this profile. `by_label`: a node label chooses the profile. An
// unknown release counts as the worst. Codes: DefaultFirstStart (v0.18.2 and later), MPSSidecarPanics (v0.18.0 to
// v0.19.3), MPSSidecarCannotSignal (the others), FailRequestsForced (below v0.20.0), AllocationPolicyUnknown (below
// v0.20.0), FieldNotInRelease, MPSNotInRelease (below v0.15.0, an error).
[[nodiscard]] std::vector<Diagnostic> check_on_release(const Profile& profile, const PluginVersion& version,
                                                       bool by_label);

// MPS came with v0.15.0; an unknown release counts as newer.
[[nodiscard]] bool knows_mps(const PluginVersion& version);

// Whether Allocate refuses a request for more than one replica of a shared resource. An explicit `false` under mps is
// honoured from v0.20.0 on; an unknown release counts as older.
[[nodiscard]] bool refuses_requests_above_one(const Profile& profile, const PluginVersion& version);

// Why a pod that requests `count` of `resource` (its original name) would be refused by the plugin, and end as Failed
// with UnexpectedAdmissionError; nullopt when it would not.
[[nodiscard]] std::optional<std::string> request_refusal(const Profile& profile, const PluginVersion& version,
                                                         std::string_view resource, std::int64_t count);

}  // namespace gso
