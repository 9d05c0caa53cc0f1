#include "tests/sim/fleet/config_choice.h"

#include <algorithm>

namespace gso::sim {

std::expected<std::string, std::string> choose_config(const std::string& label, const std::string& default_key,
                                                      std::string_view strategies,
                                                      const std::vector<std::string>& keys) {
  if (keys.empty()) return std::unexpected("no configuration files available");
  const auto exists = [&keys](const std::string& key) { return std::ranges::find(keys, key) != keys.end(); };
  if (!label.empty()) {
    if (!exists(label)) return std::unexpected("specified config " + label + " does not exist");
    return label;
  }
  if (!default_key.empty()) {
    // The message names the (empty) label instead of the default; upstream formats the wrong variable.
    if (!exists(default_key)) return std::unexpected("specified config  does not exist");
    return default_key;
  }
  while (!strategies.empty()) {
    const auto comma = strategies.find(',');
    const std::string_view strategy = strategies.substr(0, comma);
    strategies = comma == std::string_view::npos ? std::string_view() : strategies.substr(comma + 1);
    if (strategy == "named" && exists("default")) return "default";
    if (strategy == "single" && keys.size() == 1) return keys.front();
    if (strategy == "empty") return "";
    if (strategy != "named" && strategy != "single")
      return std::unexpected("unknown fallback strategy: " + std::string(strategy));
  }
  return std::unexpected("no config available");
}

}  // namespace gso::sim
