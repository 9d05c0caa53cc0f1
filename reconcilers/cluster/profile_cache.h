// Profiles by their text, parsed once, and by their revision.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "reconcilers/cluster/record.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/profile/profile.h"

namespace gso {

// --- Profiles compiled once per content: text -> parsed profile and revision, shared by every node that uses it, and
// found again by revision while a rollout away from it is under way.

// Codes of errors that are overridden on a node, because its DaemonSets have settings of their own (plugin_settings.h).
using OverriddenErrors = std::set<std::string_view>;  // Of static text.

struct CompiledProfile {
  ParsedProfile parsed;
  bool valid = false;
  std::string error;            // The first error that counts, as "line 7: …"; empty if valid.
  OverriddenErrors overridden;  // Errors of these codes do not count.
  std::string revision;         // kInvalidRevision when not valid.
  [[nodiscard]] const Profile& profile() const { return parsed.profile; }
};
using ProfilePtr = std::shared_ptr<const CompiledProfile>;

// Recorded for a node whose profile is invalid: differs from every real revision, so a fix is a change.
inline constexpr std::string_view kInvalidRevision = "v1-0000000000000000";

class ProfileCache {
 public:
  // Compiles the text, or returns the earlier result for the same text. The empty text is "no sharing".
  ProfilePtr compile(std::string_view text);
  // With the codes of errors that do not count.
  ProfilePtr compile(std::string_view text, const OverriddenErrors& overridden);
  // Any content seen with that revision, or nullptr.
  [[nodiscard]] ProfilePtr by_revision(std::string_view revision) const;
  // A text of that revision, or empty.
  [[nodiscard]] std::string text_of(std::string_view revision) const;
  [[nodiscard]] std::size_t size() const { return by_text_.size(); }

 private:
  ProfilePtr add(std::string key, std::shared_ptr<CompiledProfile> compiled);
  void forget_old();
  struct Entry {
    ProfilePtr profile;
    std::uint64_t last_used = 0;
  };
  std::unordered_map<std::string, Entry> by_text_;
  std::map<std::string, ProfilePtr, std::less<>> by_revision_;
  std::uint64_t tick_ = 0;
};

// Whether a value of some ConfigMap looks like a profile.
[[nodiscard]] bool reads_like_profile(std::string_view text);

// The document of an inline profile, and its key ("gso-<policy>-<hash>", at most 63 characters, a valid label value).
[[nodiscard]] std::string inline_profile_text(const InlineProfile& profile);
[[nodiscard]] std::string inline_profile_key(std::string_view policy, const InlineProfile& profile);
// True for keys of that form.
[[nodiscard]] bool is_managed_key(std::string_view key);

// True if the hash in the key's name is the hash of this text.
[[nodiscard]] bool is_text_of_key(std::string_view text, std::string_view key);

// 16 hex digits (FNV-1a, 64 bits) for names and condition names; no cryptographic promise.
[[nodiscard]] std::string short_hash(std::string_view text);

// --- The profile of a revision that need not be in its ConfigMap any more: somebody has edited the key since.

// From a text that this process has seen, else from the record, else from a SharingRollout: only the last two survive a
// restart of the operator. `record` may be null. `overridden`: as for ProfileCache::compile(). Null: none of them has a
// valid text of that revision.
[[nodiscard]] ProfilePtr known_profile(std::string_view revision, const World& world, const FleetRecord* record,
                                       ProfileCache& profiles, const OverriddenErrors& overridden);

}  // namespace gso
