// The cache of compiled profiles, and inline profiles as documents.
#include "reconcilers/cluster/profile_cache.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "reconcilers/profile/profile.h"

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

namespace {
// The number of contents that are kept even if unused: enough for any fleet's history of one day.
constexpr std::size_t kMaxContents = 512;
// Hex digits of a content's hash in a key's name.
constexpr std::size_t kHash = 10;
// Separates a text from the errors that do not count: no text that contains this character parses.
constexpr char kEndOfText = '\0';
}  // namespace

ProfilePtr ProfileCache::compile(std::string_view text) {
  std::string key(text);
  if (auto it = by_text_.find(key); it != by_text_.end()) {
    it->second.last_used = ++tick_;
    return it->second.profile;
  }
  auto compiled = std::make_shared<CompiledProfile>();
  compiled->parsed = parse_profile(text);
  return add(std::move(key), std::move(compiled));
}

ProfilePtr ProfileCache::compile(std::string_view text, const OverriddenErrors& overridden) {
  ProfilePtr plain = compile(text);
  if (plain->valid || overridden.empty() || !plain->parsed.accepted) return plain;
  std::string key = fmt::format("{}{}{}", text, kEndOfText, fmt::join(overridden, ","));
  if (auto it = by_text_.find(key); it != by_text_.end()) {
    it->second.last_used = ++tick_;
    return it->second.profile;
  }
  auto compiled = std::make_shared<CompiledProfile>();
  compiled->parsed = plain->parsed;
  compiled->overridden = overridden;
  return add(std::move(key), std::move(compiled));
}

ProfilePtr ProfileCache::add(std::string key, std::shared_ptr<CompiledProfile> compiled) {
  compiled->error = compiled->parsed.first_error(compiled->overridden);
  compiled->valid = compiled->error.empty();
  compiled->revision = compiled->valid ? revision_of(compiled->parsed.profile) : std::string(kInvalidRevision);
  ProfilePtr out = std::move(compiled);
  if (out->valid) by_revision_.insert_or_assign(out->revision, out);
  if (by_text_.size() >= kMaxContents) forget_old();
  by_text_.emplace(std::move(key), Entry{out, ++tick_});
  return out;
}

void ProfileCache::forget_old() {
  const std::uint64_t keep_after = tick_ - std::min<std::uint64_t>(tick_, kMaxContents / 2);
  std::erase_if(by_text_, [&](const auto& entry) {
    return entry.second.last_used < keep_after && entry.second.profile.use_count() <= 2;
  });
  std::erase_if(by_revision_, [](const auto& entry) { return entry.second.use_count() == 1; });
}

ProfilePtr ProfileCache::by_revision(std::string_view revision) const {
  auto it = by_revision_.find(revision);
  return it == by_revision_.end() ? nullptr : it->second;
}

std::string ProfileCache::text_of(std::string_view revision) const {
  const auto it =
      std::ranges::find_if(by_text_, [&](const auto& entry) { return entry.second.profile->revision == revision; });
  return it == by_text_.end() ? std::string() : it->first.substr(0, it->first.find(kEndOfText));
}

std::string short_hash(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211ULL;
  }
  return fmt::format("{:016x}", hash);
}

bool reads_like_profile(std::string_view text) {
  constexpr std::string_view kSigns[] = {"timeSlicing", "migStrategy", "mps:", "\"mps\"", "sharing:"};
  return std::ranges::any_of(kSigns, [&](std::string_view sign) { return text.find(sign) != std::string_view::npos; });
}

std::string inline_profile_text(const InlineProfile& profile) {
  if (profile.strategy == "none") return "version: v1\n";
  std::string out = "version: v1\nsharing:\n";
  out += profile.strategy == "mps" ? "  mps:\n" : "  timeSlicing:\n";
  if (profile.rename_by_default) out += "    renameByDefault: true\n";
  if (profile.fail_requests_greater_than_one) {
    out += fmt::format("    failRequestsGreaterThanOne: {}\n", *profile.fail_requests_greater_than_one);
  }
  // Quoted by JSON's rules, so that no name can change the document's structure.
  std::string name;
  for (const char c : profile.resource) {
    if (c == '"' || c == '\\') name += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) name += c;
  }
  out += fmt::format("    resources:\n    - name: \"{}\"\n      replicas: {}\n", name, profile.replicas);
  return out;
}

std::string inline_profile_key(std::string_view policy, const InlineProfile& profile) {
  constexpr std::size_t kMaxKey = 63;
  const std::string hash = short_hash(inline_profile_text(profile)).substr(0, kHash);
  std::string name;
  for (const char c : policy) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' || c == '_';
    name += plain ? c : '-';
  }
  const std::size_t room = kMaxKey - std::string_view("gso--").size() - hash.size();
  return fmt::format("gso-{}-{}", name.substr(0, room), hash);
}

bool is_text_of_key(std::string_view text, std::string_view key) {
  return is_managed_key(key) && key.ends_with(short_hash(text).substr(0, kHash));
}

bool is_managed_key(std::string_view key) {
  if (!key.starts_with("gso-") || key.size() < 5 + kHash + 1) return false;
  const std::string_view tail = key.substr(key.size() - kHash - 1);
  return tail[0] == '-' &&
         std::ranges::all_of(tail.substr(1), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace gso
