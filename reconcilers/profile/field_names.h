// The fields of plugin config v1, and what a name that is none of them was probably meant to be.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

#include "reconcilers/profile/go_text.h"

namespace gso {

inline constexpr std::array<std::string_view, 5> kConfigFields{"version", "flags", "resources", "sharing", "imex"};
inline constexpr std::array<std::string_view, 12> kFlagFields{
    "migStrategy", "failOnInitError", "mpsRoot",           "nvidiaDriverRoot",        "nvidiaDevRoot", "gdrcopyEnabled",
    "gdsEnabled",  "mofedEnabled",    "useNodeFeatureAPI", "deviceDiscoveryStrategy", "plugin",        "gfd"};
inline constexpr std::array<std::string_view, 7> kPluginFields{
    "passDeviceSpecs",     "deviceListStrategy",           "deviceIDStrategy", "cdiAnnotationPrefix", "nvidiaCTKPath",
    "containerDriverRoot", "sharedDevicesAllocationPolicy"};
inline constexpr std::array<std::string_view, 5> kGfdFields{"oneshot", "noTimestamp", "sleepInterval", "outputFile",
                                                            "machineTypeFile"};
inline constexpr std::array<std::string_view, 2> kResourcesFields{"gpus", "mig"};
inline constexpr std::array<std::string_view, 2> kPatternFields{"pattern", "name"};
inline constexpr std::array<std::string_view, 2> kSharingFields{"timeSlicing", "mps"};
inline constexpr std::array<std::string_view, 3> kSectionFields{"renameByDefault", "failRequestsGreaterThanOne",
                                                                "resources"};
inline constexpr std::array<std::string_view, 4> kEntryFields{"name", "rename", "devices", "replicas"};
inline constexpr std::array<std::string_view, 2> kImexFields{"channelIDs", "required"};

// The field that encoding/json decodes a key into: the one of exactly this name, else one that differs in case only.
// end() when there is none.
template <std::size_t N>
[[nodiscard]] constexpr auto find_field(const std::array<std::string_view, N>& fields, std::string_view key) {
  const auto exact = std::find(fields.begin(), fields.end(), key);
  return exact != fields.end() ? exact
                               : std::find_if(fields.begin(), fields.end(), [&](auto f) { return equal_fold(key, f); });
}

// What to say after "unknown field": the spelling or the place that was probably meant, or which fields exist here.
[[nodiscard]] std::string field_advice(std::string_view key, std::span<const std::string_view> fields);

// Edits between two words; case, '-' and '_' do not count, and only the first 64 characters do.
[[nodiscard]] std::size_t edit_distance(std::string_view left, std::string_view right);
// Whether it is at most `most`; cheap for words that are far apart. Characters of `ignored` count as if they were
// absent.
[[nodiscard]] bool within_edits(std::string_view left, std::string_view right, std::size_t most,
                                std::string_view ignored = "-_");

// The candidate nearest to `word` by edit distance (case ignored) if it is near enough to be meant; else empty.
[[nodiscard]] std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace gso
