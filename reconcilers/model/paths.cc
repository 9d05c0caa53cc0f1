#include "reconcilers/model/paths.h"

#include <algorithm>

namespace gso {

std::string clean_path(std::string_view path) {
  const bool absolute = path.starts_with('/');
  std::string out;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(part.size() + 1, path.size()));
    if (part.empty() || part == ".") continue;
    if (absolute || !out.empty()) out += '/';
    out += part;
  }
  return out.empty() && absolute ? "/" : out;
}

bool is_at_or_below(std::string_view path, std::string_view directory) {
  if (!path.starts_with(directory)) return false;
  return directory.ends_with('/') || path.size() == directory.size() || path[directory.size()] == '/';
}

}  // namespace gso
