// What is wrong with a ConfigMap of profiles, apart from the profiles: asked by `lint` of a file and by preflight of
// the object that a plugin mounts.
#pragma once

#include <string>
#include <string_view>

namespace gso {

// Why no node label can choose this key; empty where one can.
[[nodiscard]] std::string key_label_problem(std::string_view key);

// It has no key.
inline constexpr std::string_view kNoKeys =
    "the ConfigMap has no key: config-manager exits on it, with the fallback \"empty\" too";

// Why no volume can have the ConfigMap's name, which the GPU Operator gives to one; empty where it can. ConfigMap names
// may have dots and 253 characters, names of volumes at most 63 and no dot.
[[nodiscard]] std::string volume_name_problem(std::string_view name);

}  // namespace gso
