// Parts of the pod templates that the installations write.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace gso::sim {

[[nodiscard]] inline nlohmann::json env(const char* name, const std::string& value) {
  return {{"name", name}, {"value", value}};
}
[[nodiscard]] inline nlohmann::json mount(const std::string& volume, const char* path) {
  return {{"name", volume}, {"mountPath", path}};
}

}  // namespace gso::sim
