// Base64, as kubeconfig's *-data fields carry it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace k8s {

// Standard alphabet with padding; line breaks are ignored, as Go does. nullopt for anything else.
[[nodiscard]] std::optional<std::string> base64_decode(std::string_view text);
[[nodiscard]] std::string base64_encode(std::string_view bytes);

}  // namespace k8s
