// Any bytes as a profile: no crash, a verdict that agrees with the diagnostics, and a normalised form that is stable.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "reconcilers/lint/lint.h"
#include "reconcilers/profile/expected.h"
#include "reconcilers/profile/profile.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const gso::ParsedProfile parsed = gso::parse_profile(text);
  if (parsed.valid() != parsed.first_error().empty() || (parsed.valid() && !parsed.accepted)) std::abort();
  if (!parsed.accepted) return 0;
  auto normalized = gso::normalized_json(parsed.profile);
  const std::string once = normalized.dump();
  if (normalized["sharing"]["timeSlicing"].empty()) normalized["sharing"].erase("timeSlicing");
  const gso::ParsedProfile again = gso::parse_profile(normalized.dump());
  if (!again.accepted || gso::normalized_json(again.profile).dump() != once) std::abort();
  if (!gso::known_revision_format(gso::revision_of(parsed.profile))) std::abort();
  static_cast<void>(
      gso::expected_state(parsed.profile, {gso::Device{.name = "GPU", .memory_mib = 1, .compute_major = 8}}));
  return 0;
}
