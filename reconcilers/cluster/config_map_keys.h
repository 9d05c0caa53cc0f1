// The keys of a ConfigMap, for messages and for what chooses among them.
#pragma once

#include <string>
#include <vector>

#include "reconcilers/model/objects.h"

namespace gso {

// In their order.
[[nodiscard]] inline std::vector<std::string> keys_of(const ConfigMap& config_map) {
  std::vector<std::string> out;
  out.reserve(config_map.data.size());
  for (const auto& [key, text] : config_map.data) out.push_back(key);
  return out;
}

}  // namespace gso
