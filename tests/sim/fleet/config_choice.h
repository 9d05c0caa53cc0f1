// Which key of the mounted ConfigMap config-manager chooses. Its own rules, not the operator's.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace gso::sim {

/// The key for a node with this label value ("" for none), or "" for an empty config. `strategies` is a list with
/// commas. The error is what config-manager prints before it exits with 1.
[[nodiscard]] std::expected<std::string, std::string> choose_config(const std::string& label,
                                                                    const std::string& default_key,
                                                                    std::string_view strategies,
                                                                    const std::vector<std::string>& keys);

}  // namespace gso::sim
