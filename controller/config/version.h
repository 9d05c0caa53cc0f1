// The operator's version and the libraries inside the program, from the build.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gso {

[[nodiscard]] const std::string& version();

// A library that the program contains, so that no update of the system's packages reaches it.
struct LinkedLibrary {
  std::string_view name;     // Of Debian's source package.
  std::string_view version;  // Of that package; "8.14.1 unpatched" where its patches were missing.
};
// In the order of their names. Builds for tests have libcurl and OpenSSL; a release has all but glibc.
[[nodiscard]] std::vector<LinkedLibrary> linked_libraries();

}  // namespace gso
