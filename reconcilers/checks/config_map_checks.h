// Problems of a ConfigMap of profiles, apart from the profiles: `lint` checks a file, preflight the object that a
// plugin mounts.
#pragma once

#include <string>
#include <string_view>

namespace gso {

// Why no node label can choose this key; empty if one can.
[[nodiscard]] std::string key_label_problem(std::string_view key);

// The ConfigMap has no key.
inline constexpr std::string_view kNoKeys =
    "the ConfigMap has no key: config-manager exits on it, even with the fallback \"empty\"";

// Why no volume can have the ConfigMap's name, which the GPU Operator uses as a volume name; empty if one can. A
// ConfigMap name can have dots and 253 characters, a volume name at most 63 characters and no dot.
[[nodiscard]] std::string volume_name_problem(std::string_view name);

}  // namespace gso
