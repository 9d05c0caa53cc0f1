// What a YAML 1.1 scalar means, exactly as the plugin's YAML library (go.yaml.in/yaml/v2) resolves it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "reconcilers/profile/yaml_node.h"

namespace gso {

// std::monostate is null.
using YamlScalar = std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string>;

// nullopt when an explicit tag contradicts the text (!!int four, !!binary with bad base64): upstream refuses the
// document.
[[nodiscard]] std::optional<YamlScalar> resolve_scalar(const YamlNode& node);

}  // namespace gso
