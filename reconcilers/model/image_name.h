// Names of container images.
#pragma once

#include <string_view>

namespace gso {

// The last part of the path, without tag and digest: "hami" of "registry:5000/mirror/hami:v2.5.0@sha256:…".
[[nodiscard]] constexpr std::string_view image_name(std::string_view image) {
  image = image.substr(0, image.find('@'));
  image = image.substr(image.rfind('/') + 1);  // Without a slash: all of it.
  return image.substr(0, image.find(':'));
}

}  // namespace gso
