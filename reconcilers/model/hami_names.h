// What Project-HAMi writes on a Node and on its DaemonSet. Source: Project-HAMi/HAMi, pkg/device/nvidia/device.go and
// charts/hami/templates/device-plugin, from v2.4.0 to v2.10.0.
#pragma once

#include <string_view>

namespace gso::hami {

// Annotation of a Node: the GPUs that HAMi's device plugin has registered there. It stays when HAMi is removed.
inline constexpr std::string_view kRegistered = "hami.io/node-nvidia-register";
// Label of its device plugin's pods, with that value.
inline constexpr std::string_view kComponentLabel = "app.kubernetes.io/component";
inline constexpr std::string_view kComponent = "hami-device-plugin";
// The device plugin's container, and the last part of the name of its image: "projecthami/hami:v2.5.0".
inline constexpr std::string_view kContainer = "device-plugin";
inline constexpr std::string_view kImage = "hami";

}  // namespace gso::hami
