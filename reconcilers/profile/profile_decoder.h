// The two steps from the JSON value of a profile document to a Profile: it is decoded as encoding/json and the plugin's
// own unmarshalers do, with what is refused and what is silently ignored; then the components look at it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/profile/document_value.h"
#include "reconcilers/profile/field_names.h"
#include "reconcilers/profile/profile.h"

namespace gso {

struct DecodedSetting {
  const ProfileField* field = nullptr;
  std::string text = {};       // Canonical.
  std::string misplaced = {};  // Path of a nested field of this name, if upstream made the setting empty because of it.
  // The items of a list, possibly empty; nullopt if the setting is not a list.
  std::optional<std::vector<std::string>> words = std::nullopt;
};

// The document as upstream holds it in memory, before the components look at it.
struct DecodedProfile {
  std::map<std::string, DecodedSetting> settings;  // flags.* and imex.*, as written; null removes.
  SharingSection time_slicing;
  std::optional<SharingSection> mps;
  bool custom_resources = false;                        // A non-empty list in resources.gpus or resources.mig.
  std::map<std::string, Position, std::less<>> places;  // By path: settings, sections, names and replicas.

  // Of the value at the path, or of what it stands in.
  [[nodiscard]] Position place(std::string_view path) const;
};

[[nodiscard]] DecodedProfile decode_profile(const DocumentValue& document, std::vector<Diagnostic>& diagnostics);

// What the components make of a decoded document: adds to `diagnostics` what they exit on whatever the hardware, and
// what they drop, and returns the profile as upstream holds it in memory, with `rename`, `devices` and `resources`
// dropped.
[[nodiscard]] Profile check_profile(const DecodedProfile& decoded, std::vector<Diagnostic>& diagnostics);

}  // namespace gso
