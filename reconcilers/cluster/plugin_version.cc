// The device plugin's version from an image's tag.
#include "reconcilers/cluster/plugin_version.h"

#include <fmt/format.h>

#include <charconv>
#include <tuple>

namespace gso {

PluginVersion PluginVersion::of_image(std::string_view image) {
  // registry:5000/path/name:v0.17.1-ubi9@sha256:…: the tag follows the last colon of the last path segment.
  image = image.substr(0, image.find('@'));
  const auto slash = image.rfind('/');
  std::string_view name = slash == std::string_view::npos ? image : image.substr(slash + 1);
  const auto colon = name.find(':');
  if (colon == std::string_view::npos) return {};
  std::string_view tag = name.substr(colon + 1);
  if (tag.starts_with('v')) tag.remove_prefix(1);
  PluginVersion out;
  int* const parts[] = {&out.major, &out.minor, &out.patch};
  const char* at = tag.data();
  const char* const end = tag.data() + tag.size();
  for (int* part : parts) {
    if (part != parts[0]) {
      if (at == end || *at != '.') return {};
      ++at;
    }
    auto [rest, code] = std::from_chars(at, end, *part);
    if (code != std::errc{} || *part < 0) return {};
    at = rest;
  }
  if (at != end && *at != '-' && *at != '+') return {};
  out.known = true;
  return out;
}

bool PluginVersion::known_below(int a, int b, int c) const {
  if (!known) return false;
  return std::tie(major, minor, patch) < std::tie(a, b, c);
}

std::string PluginVersion::to_string() const {
  return known ? fmt::format("v{}.{}.{}", major, minor, patch) : "unknown";
}

}  // namespace gso
