// The path of a value in a document ("sharing.mps.resources[0].replicas"), kept while walking down and up again.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gso {

// Appends one step to the path for as long as it lives.
class PathStep {
 public:
  PathStep(std::string& path, std::string_view key) : path_(path), length_(path.size()) {
    if (!path.empty()) {
      path += '.';
    }
    path += key;
  }
  PathStep(std::string& path, std::size_t index) : path_(path), length_(path.size()) {
    path += '[';
    path += std::to_string(index);
    path += ']';
  }
  ~PathStep() { path_.resize(length_); }
  PathStep(const PathStep&) = delete;
  PathStep& operator=(const PathStep&) = delete;

 private:
  std::string& path_;
  std::size_t length_;
};

}  // namespace gso
