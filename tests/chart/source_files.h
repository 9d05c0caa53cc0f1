// Files of the project, by their path from its root.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace gso {

inline std::filesystem::path source_dir() {
  const char* dir = std::getenv("GSO_SOURCE_DIR");
  return dir == nullptr ? "." : dir;
}

inline std::string read(const std::filesystem::path& path) {
  std::ifstream stream(source_dir() / path);
  EXPECT_TRUE(stream.good()) << path;
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace gso
