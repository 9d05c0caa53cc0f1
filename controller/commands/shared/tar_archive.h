// A tar archive (POSIX ustar) in memory: a few text files, readable by every tar.
#pragma once

#include <string>
#include <string_view>

#include "k8sclient/value/time.h"

namespace gso {

class TarArchive {
 public:
  // `modified`: of every file.
  explicit TarArchive(k8s::WallTime modified) : modified_(modified) {}
  // Mode 0600. Names of more than 100 bytes are cut.
  void add(std::string name, std::string_view content);
  // With the two empty blocks that end it; nothing may be added afterwards.
  [[nodiscard]] std::string finish() &&;

 private:
  k8s::WallTime modified_;
  std::string bytes_;
};

}  // namespace gso
