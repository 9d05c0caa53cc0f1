// GSO_VERSION is the project version of the top CMakeLists.txt; GSO_LINKED_LIBRARIES is made by
// cmake/Dependencies.cmake, "name=version,name=version".
#include "controller/config/version.h"

#include <ranges>

namespace gso {

const std::string& version() {
  static const std::string kVersion = GSO_VERSION;
  return kVersion;
}

std::vector<LinkedLibrary> linked_libraries() {
  constexpr std::string_view kAll = GSO_LINKED_LIBRARIES;
  std::vector<LinkedLibrary> out;
  for (const auto part : std::views::split(kAll, ',')) {
    const std::string_view entry(part.begin(), part.end());
    const auto equals = entry.find('=');
    out.push_back({entry.substr(0, equals), entry.substr(equals + 1)});
  }
  return out;
}

}  // namespace gso
