#include "reconcilers/profile/revision.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

#include <fmt/format.h>

namespace gso {
namespace {

constexpr std::string_view kRevisionPrefix = "v1-";

// FNV-1a with 64 bits: the same on every machine and in every build, and fast. Not for secrets.
std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ULL;
  }
  return hash;
}

// Length before text, so that no two lists of fields read the same.
void append(std::string& out, std::string_view text) {
  out += fmt::format("{}:{};", text.size(), text);
}

}  // namespace

std::string revision_of(const Profile& profile) {
  std::string canonical;
  append(canonical, profile.mig_strategy);
  append(canonical, to_string(profile.strategy()));
  if (const SharingSection* active = profile.active(); active != nullptr) {
    append(canonical, active->rename_by_default ? "renamed" : "named");
    append(canonical, active->fail_requests_greater_than_one.value_or(profile.mps.has_value()) ? "one" : "many");
    std::set<std::string_view> names;
    for (const ReplicatedResource& resource : active->resources) {
      names.insert(resource.name);
    }
    for (const std::string_view name : names) {
      append(canonical, name);
      append(canonical, std::to_string(profile.plugin_replicas(name)));
      append(canonical, std::to_string(profile.gfd_replicas(name)));
    }
  }
  for (const auto& [path, value] : profile.settings) {
    append(canonical, path);
    append(canonical, value);
  }
  return fmt::format("{}{:016x}", kRevisionPrefix, fnv1a(canonical));
}

bool known_revision_format(std::string_view revision) {
  return revision.starts_with(kRevisionPrefix) && revision.size() == kRevisionPrefix.size() + 16 &&
         revision.find_first_not_of("0123456789abcdef", kRevisionPrefix.size()) == std::string_view::npos;
}

}  // namespace gso
