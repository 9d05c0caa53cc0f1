// A compressed archive in memory: tar (POSIX ustar) and gzip, readable everywhere.
#pragma once

#include <string>
#include <string_view>

#include "k8sclient/value/error.h"
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

// `bytes` compressed, as one member of a .gz file without a name and a time. Errors: `decode`, if zlib has no memory.
[[nodiscard]] k8s::Result<std::string> gzipped(std::string_view bytes);

}  // namespace gso
