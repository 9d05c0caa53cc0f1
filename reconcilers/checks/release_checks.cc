// Defects of the plugin's release that matter for the profile. An unknown release counts as the worst.
#include <array>
#include <string>

#include <fmt/format.h>

#include "reconcilers/checks/check_functions.h"
#include "reconcilers/cluster/plugin_settings.h"
#include "reconcilers/cluster/profile_cache.h"
#include "reconcilers/cluster/release.h"
#include "reconcilers/model/foreign_text.h"

namespace gso::check {
namespace {

// Fields of the profile that a minor release introduced. Source: api/config/v1 of the device plugin's tags.
struct KnownSince {
  std::string_view path;
  int minor;
};
constexpr std::array<KnownSince, 6> kKnownSince{{{"flags.useNodeFeatureAPI", 15},
                                                 {"flags.nvidiaDevRoot", 16},
                                                 {"flags.deviceDiscoveryStrategy", 16},
                                                 {"imex.channelIDs", 17},
                                                 {"imex.required", 17},
                                                 {"flags.gdrcopyEnabled", 18}}};

bool by_label(const Setup& setup) {
  return setup.key.source == EffectiveKey::Source::label;
}

bool refused_by_label(const Setup& setup) {
  return setup.wants_mps() && by_label(setup) && setup.key.key != setup.plugin.default_key &&
         !loads_mps_by_label(setup.plugin.version, setup.mps_signal_fixed);
}

// What would help without another default key, as the start of the advice.
std::string_view with_the_signal_fixed(const Setup& setup) {
  if (setup.mps_signal_fixed)
    return "upgrade the plugin to v0.20.0 or later, from which on the corrected signal helps, or ";
  return setup.plugin.version.known && !setup.plugin.version.known_below(0, 20, 0)
             ? "set fixes.mpsSignal of the operator's chart (Kubernetes 1.36 or later), or "
             : "";
}

// Another default key moves all nodes that follow the default. The operator's own keys (gso-...) are never proposed: it
// names them by their content, and deletes those that no policy has.
std::string with_another_default(const Setup& setup) {
  const std::string moves = fmt::format(
      "({}): all nodes without a label {} would then run it, so label those that need another profile first",
      default_key_setting(setup.installation), setup.plugin.node_label);
  if (!is_managed_key(setup.key.key))
    return fmt::format("make {} the default key {}", shown_value(setup.key.key), moves);
  return fmt::format(
      "put the inline profile under a key of your own of ConfigMap {}, name that by configMapKey of the policy, and "
      "make it the default key {}",
      shown_value(setup.installation.id()), moves);
}

bool panics(const PluginVersion& version) {
  return version.known && !version.known_below(0, 18, 0) && version.known_below(0, 20, 0);
}

Complaints sidecar(const Setup& setup, bool of_panicking_release, std::string_view what) {
  const PluginVersion& version = setup.plugin.version;
  // If MPS is refused, replacing pods does not help.
  const bool concerned = setup.wants_mps() && knows_mps(version) && !refused_by_label(setup);
  if (!concerned || panics(version) != of_panicking_release) return {};
  if (setup.mps_signal_fixed && !of_panicking_release) return {};
  return {{"sharing.mps",
           fmt::format("the MPS daemon of plugin {} does not load a changed profile by itself: its sidecar {}; its "
                       "pod must be replaced when the profile changes",
                       version.to_string(), what)}};
}

}  // namespace

Complaints mps_not_in_release(const Setup& setup) {
  const Profile* profile = setup.valid_profile();
  if (profile == nullptr || !profile->mps || knows_mps(setup.plugin.version)) return {};
  return {{"sharing.mps", fmt::format("plugin {} does not support MPS and ignores the section: the GPUs would not be "
                                      "shared; upgrade to v0.15.0 or later",
                                      setup.plugin.version.to_string())}};
}

Complaints mps_by_label_unsupported(const Setup& setup) {
  if (!refused_by_label(setup)) return {};
  const std::string refused =
      fmt::format("MPS selected by label does not work with device plugin {} (v0.18.2 and later)",
                  setup.plugin.version.to_string());
  if (setup.label_left)
    return {
        {"sharing.mps", fmt::format("{}: the label {} is left over: it names key {}, which the operator generated for "
                                    "an inline profile that no policy of the node has any more. Remove the label",
                                    refused, setup.plugin.node_label, setup.key.key)}};
  return {{"sharing.mps", fmt::format("{}: {}{}", refused, with_the_signal_fixed(setup), with_another_default(setup))}};
}

Complaints default_first_start(const Setup& setup) {
  const bool loads_another = by_label(setup) && setup.key.key != setup.plugin.default_key;
  if (setup.valid_profile() == nullptr || !loads_another || setup.plugin.version.known_below(0, 18, 2)) return {};
  return {{"", fmt::format("plugin {} loads the default profile first at every start and the labelled one after it; "
                           "until then the node shows the default",
                           setup.plugin.version.to_string())}};
}

Complaints field_not_in_release(const Setup& setup) {
  Complaints out;
  const Profile* profile = setup.valid_profile();
  for (const KnownSince& field : kKnownSince) {
    const bool written = profile != nullptr && profile->settings.contains(std::string(field.path));
    if (!written || !setup.plugin.version.known_below(0, field.minor, 0)) continue;
    out.push_back({std::string(field.path),
                   fmt::format("plugin {} does not support the field and ignores it; upgrade to v0.{}.0 or later",
                               setup.plugin.version.to_string(), field.minor)});
  }
  return out;
}

Complaints mps_sidecar_panics(const Setup& setup) {
  return sidecar(setup, true, "panics");
}

Complaints mps_sidecar_cannot_signal(const Setup& setup) {
  return sidecar(setup, false, "finds no process to signal");
}

Complaints fail_requests_forced(const Setup& setup) {
  const PluginVersion& version = setup.plugin.version;
  if (!setup.wants_mps() || !knows_mps(version)) return {};
  const Profile& profile = *setup.valid_profile();
  if (profile.mps->fail_requests_greater_than_one != false || !refuses_requests_above_one(profile, version)) return {};
  return {{"sharing.mps.failRequestsGreaterThanOne",
           fmt::format("plugin {} refuses requests above 1 anyway; false is honoured from v0.20.0 on",
                       version.to_string())}};
}

Complaints allocation_policy_unknown(const Setup& setup) {
  constexpr std::string_view kField = "flags.plugin.sharedDevicesAllocationPolicy";
  const Profile* profile = setup.valid_profile();
  const PluginVersion& version = setup.plugin.version;
  const bool written = profile != nullptr && profile->settings.contains(std::string(kField));
  if (!written || (version.known && !version.known_below(0, 20, 0))) return {};
  return {{std::string(kField),
           fmt::format("plugin {} does not support the field and ignores it; upgrade to v0.20.0 or later",
                       version.to_string())}};
}

}  // namespace gso::check
