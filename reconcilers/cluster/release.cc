// See release.h.
#include "reconcilers/cluster/release.h"

#include <fmt/format.h>

namespace gso {

bool knows_mps(const PluginVersion& version) {
  return !version.known_below(0, 15, 0);
}

bool loads_mps_by_label(const PluginVersion& version, bool signal_fixed) {
  return version.known_below(0, 18, 2) || (signal_fixed && version.known && !version.known_below(0, 20, 0));
}

bool refuses_requests_above_one(const Profile& profile, const PluginVersion& version) {
  const SharingSection* active = profile.active();
  if (active == nullptr || profile.strategy() == Strategy::none) {
    return false;
  }
  if (!profile.mps) {
    return active->fail_requests_greater_than_one.value_or(false);
  }
  const bool forced = !version.known || version.known_below(0, 20, 0);
  return forced || active->fail_requests_greater_than_one.value_or(true);
}

std::optional<std::string> request_refusal(const Profile& profile, const PluginVersion& version,
                                           std::string_view resource, std::int64_t count) {
  const bool shared = profile.plugin_replicas(resource) > 1;
  if (!shared || count <= 1 || !refuses_requests_above_one(profile, version)) {
    return std::nullopt;
  }
  return fmt::format("{} is shared and the plugin refuses requests above 1 of it; found {}", resource, count);
}

}  // namespace gso
