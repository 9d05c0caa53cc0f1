// The fields of plugin config v1, the names of resources, and what a name that is none of them was probably meant to
// be.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gso {

// The words that a setting must be, and what happens on any other one.
struct SettingWords {
  std::string_view code;
  std::array<std::string_view, 4> words;  // Empty ones after them.
  std::string_view effect = "the plugin exits";
};
inline constexpr SettingWords kMigStrategies{
    "UnknownMigStrategy", {"none", "single", "mixed"}, "the plugin and GFD exit"};
inline constexpr SettingWords kDiscoveryStrategies{"UnknownDiscoveryStrategy", {"auto", "nvml", "tegra"}};
inline constexpr SettingWords kIdStrategies{"UnknownDeviceIDStrategy", {"uuid", "index"}};
inline constexpr SettingWords kAllocationPolicies{"UnknownAllocationPolicy", {"distributed", "packed"}};
inline constexpr SettingWords kListStrategies{"UnknownDeviceListStrategy",
                                              {"envvar", "volume-mounts", "cdi-annotations", "cdi-cri"}};

// How the value of a setting is read. `boolean`: a pointer upstream, which null makes empty; `plain_boolean`: null
// leaves it as it is. `section`: settings of its own.
enum class FieldKind : std::uint8_t { text, boolean, plain_boolean, duration, words, numbers, section };
struct ProfileField {
  std::string_view name;
  // The others are of flags and imex, and of what is below them.
  FieldKind kind = FieldKind::text;
  // The value that every release of the components has as its own default: a profile that writes it out means the same
  // as one that leaves it out, because a flag or environment variable on the DaemonSet overrides both.
  std::optional<std::string_view> usual = std::nullopt;
  const SettingWords* words = nullptr;          // Null: any text.
  std::span<const ProfileField> settings = {};  // Of a section.
};
using ProfileFields = std::span<const ProfileField>;

inline constexpr std::array<ProfileField, 5> kConfigFields{
    {{"version"}, {"flags"}, {"resources"}, {"sharing"}, {"imex"}}};
inline constexpr std::array<ProfileField, 2> kResourcesFields{{{"gpus"}, {"mig"}}};
inline constexpr std::array<ProfileField, 2> kPatternFields{{{"pattern"}, {"name"}}};
inline constexpr std::array<ProfileField, 2> kSharingFields{{{"timeSlicing"}, {"mps"}}};
inline constexpr std::array<ProfileField, 3> kSectionFields{
    {{"renameByDefault"}, {"failRequestsGreaterThanOne"}, {"resources"}}};
inline constexpr std::array<ProfileField, 4> kEntryFields{{{"name"}, {"rename"}, {"devices"}, {"replicas"}}};
inline constexpr std::array<ProfileField, 7> kPluginFlags{
    {{"passDeviceSpecs", FieldKind::boolean, "false"},
     {"deviceListStrategy", FieldKind::words, "envvar", &kListStrategies},
     {"deviceIDStrategy", FieldKind::text, "uuid", &kIdStrategies},
     {"cdiAnnotationPrefix"},
     {"nvidiaCTKPath"},
     {"containerDriverRoot"},
     {"sharedDevicesAllocationPolicy", FieldKind::text, {}, &kAllocationPolicies}}};
inline constexpr std::array<ProfileField, 5> kGfdFlags{{{"oneshot", FieldKind::boolean, "false"},
                                                        {"noTimestamp", FieldKind::boolean, "false"},
                                                        {"sleepInterval", FieldKind::duration, "60000000000"},
                                                        {"outputFile"},
                                                        {"machineTypeFile"}}};
inline constexpr std::array<ProfileField, 12> kFlags{
    {{"migStrategy", FieldKind::text, "none", &kMigStrategies},
     {"failOnInitError", FieldKind::boolean, "true"},
     {"mpsRoot"},
     {"nvidiaDriverRoot"},
     {"nvidiaDevRoot"},
     {"gdrcopyEnabled", FieldKind::boolean, "false"},
     {"gdsEnabled", FieldKind::boolean, "false"},
     {"mofedEnabled", FieldKind::boolean, "false"},
     {"useNodeFeatureAPI", FieldKind::boolean},
     {"deviceDiscoveryStrategy", FieldKind::text, "auto", &kDiscoveryStrategies},
     {"plugin", FieldKind::section, {}, nullptr, kPluginFlags},
     {"gfd", FieldKind::section, {}, nullptr, kGfdFlags}}};
inline constexpr std::array<ProfileField, 2> kImex{
    {{"channelIDs", FieldKind::numbers, ""}, {"required", FieldKind::plain_boolean, "false"}}};

// The field that encoding/json decodes a key into: the one of exactly this name, else one that differs in case only.
// Null: there is none.
[[nodiscard]] const ProfileField* find_field(ProfileFields fields, std::string_view key);
// "did you mean "x"?", or which words the setting can be, if it cannot be this one; empty: it can.
[[nodiscard]] std::string complaint_about(const SettingWords& allowed, std::string_view word);

// What to say after "unknown field": the spelling or the place that was probably meant, or which fields exist here.
[[nodiscard]] std::string field_advice(std::string_view key, ProfileFields fields);
[[nodiscard]] std::vector<std::string_view> names_of(ProfileFields fields);

// Edits between two words. Only their first 64 characters count, case does not, and characters of `ignored` count as
// if they were absent. Cheap for words that are more than `most` apart: then the answer is `most` + 1.
[[nodiscard]] std::size_t edit_distance(std::string_view left, std::string_view right, std::size_t most = 64,
                                        std::string_view ignored = "-_");
[[nodiscard]] inline bool within_edits(std::string_view left, std::string_view right, std::size_t most,
                                       std::string_view ignored = "-_") {
  return edit_distance(left, right, most, ignored) <= most;
}

// The candidate nearest to `word` by edit distance (case ignored) if it is near enough to be meant; else empty.
[[nodiscard]] std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates);

// "did you mean "x"?" if one of the words is near enough to be meant; else all: "use one of x, y".
[[nodiscard]] std::string word_advice(std::string_view word, std::span<const std::string_view> words,
                                      std::string_view otherwise = "use one of");

// The most similar of `words`, as the end of a sentence: "; did you mean 'lint'?"; empty if none is similar.
[[nodiscard]] std::string did_you_mean(std::string_view mistyped, const std::vector<std::string>& words);

// The name that is meant by `resource`: "nvidia.com/gpu" by nvidia.com/gpus, nvidia.com/GPU or nvida.com/gpu. Empty:
// it is no such name. Other plugins offer nvidia.com/vgpu, nvidia.com/gpumem, nvidia.com/gpu-10gb, and more: those are
// left alone.
[[nodiscard]] std::string_view meant_resource(std::string_view resource);

// What the names of all resources begin with.
inline constexpr std::string_view kDomainPrefix = "nvidia.com/";
// A spelling of the name that upstream would take, or empty.
[[nodiscard]] std::string repaired_name(std::string_view name);

// --- config-manager's choice of a key, in its order: label, default, fallbacks (source: cmd/config-manager/main.go;
// the table is in docs/profiles.md).

struct EffectiveKey {
  enum class Source : std::uint8_t {
    label,
    default_key,
    fallback_named,
    fallback_single,
    fallback_empty,
    error
  } source = Source::error;
  std::string key;    // Empty for fallback_empty (no sharing) and error.
  std::string error;  // Why nothing resolves.
  friend bool operator==(const EffectiveKey&, const EffectiveKey&) = default;
};
[[nodiscard]] EffectiveKey resolve_effective_key(std::string_view label_value, std::string_view default_key,
                                                 const std::vector<std::string>& fallbacks,
                                                 const std::vector<std::string>& keys);

// " (did you mean "mps-4"?)" for the name of a key that does not exist; empty if none of the keys is near. A key with
// other digits is another profile, not a typing error.
[[nodiscard]] std::string key_advice(std::string_view name, const std::vector<std::string>& keys);

}  // namespace gso
