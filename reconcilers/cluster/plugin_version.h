// The release of the device plugin in an image.
#pragma once

#include <compare>
#include <string>
#include <string_view>

namespace gso {

// The device plugin's version, from an image tag ("v0.17.1", "v0.17.1-ubi9"). Unknown (digest, "latest") counts as the
// worst case in every rule that depends on it.
struct PluginVersion {
  int major = 0;
  int minor = 0;
  int patch = 0;
  bool known = false;
  [[nodiscard]] static PluginVersion of_image(std::string_view image);
  // Known and below a.b.c.
  [[nodiscard]] bool known_below(int a, int b, int c) const;
  [[nodiscard]] std::string to_string() const;  // "v0.17.1" or "unknown"
  friend auto operator<=>(const PluginVersion&, const PluginVersion&) = default;
};

}  // namespace gso
