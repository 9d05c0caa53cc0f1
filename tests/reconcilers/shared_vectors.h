// The vector files that stand beside the project, where they do.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

namespace gso::testing {

inline std::filesystem::path source_dir() {
  const char* dir = std::getenv("GSO_SOURCE_DIR");
  return dir != nullptr ? dir : ".";
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// vectors/<name>.json of $GSO_SHARED_DIR, or of ../shared beside the project; nullopt where there is none.
inline std::optional<nlohmann::json> shared_vectors(const std::string& name) {
  const char* dir = std::getenv("GSO_SHARED_DIR");
  const auto root = dir != nullptr ? std::filesystem::path(dir) : source_dir() / ".." / "shared";
  const auto path = root / "vectors" / (name + ".json");
  if (!std::filesystem::exists(path)) {
    return std::nullopt;
  }
  return nlohmann::json::parse(read_file(path));
}

}  // namespace gso::testing
