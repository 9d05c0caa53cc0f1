// Files of the source tree that tests read, upstream's verdicts (tests/vectors) among them.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
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

// The facts of tests/vectors/<name>.json. tests/vectors/judge.py judges the cases of these files.
inline nlohmann::json vector_facts(const std::string& name) {
  return nlohmann::json::parse(read_file(source_dir() / "tests/vectors" / (name + ".json"))).at("facts");
}

}  // namespace gso::testing
