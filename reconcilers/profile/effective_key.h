// config-manager's choice of a key, in its order: label, default, fallbacks (source: cmd/config-manager/main.go; the
// table is in docs/profiles.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gso {

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
