#include "reconcilers/cluster/known_profile.h"

#include <string>

namespace gso {

ProfilePtr known_profile(std::string_view revision, const World& world, const FleetRecord* record,
                         ProfileCache& profiles, const OverriddenErrors& overridden) {
  if (revision.empty() || revision == kInvalidRevision) return nullptr;
  const auto is_of_revision = [&](const ProfilePtr& known) {
    return known != nullptr && known->valid && known->revision == revision;
  };
  if (ProfilePtr seen = profiles.by_revision(revision); is_of_revision(seen)) return seen;
  const auto compiled = [&](const std::string& text) {
    ProfilePtr plain = profiles.compile(text);
    return plain->valid ? plain : profiles.compile(text, overridden);
  };
  if (record != nullptr) {
    const auto kept = record->texts.find(std::string(revision));
    if (kept != record->texts.end()) {
      if (ProfilePtr known = compiled(kept->second); is_of_revision(known)) return known;
    }
  }
  for (const auto& [key, rollout] : world.rollouts.all()) {
    if (rollout->to_revision != revision || rollout->profile.empty()) continue;
    if (ProfilePtr known = compiled(rollout->profile); is_of_revision(known)) return known;
  }
  return nullptr;
}

}  // namespace gso
