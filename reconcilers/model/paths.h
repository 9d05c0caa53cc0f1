// Paths of hosts and containers, as manifests spell them.
#pragma once

#include <string>
#include <string_view>

namespace gso {

// One spelling for one path: without repeated slashes, parts ".", and a slash at the end. Parts ".." stay: the API
// server refuses them in host paths.
[[nodiscard]] std::string clean_path(std::string_view path);

// The path is the directory or is below it. Both are clean.
[[nodiscard]] bool is_at_or_below(std::string_view path, std::string_view directory);

}  // namespace gso
