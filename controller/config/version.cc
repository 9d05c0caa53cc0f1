// GSO_VERSION is the project version of the top CMakeLists.txt.
#include "controller/config/version.h"

namespace gso {

const std::string& version() {
  static const std::string kVersion = GSO_VERSION;
  return kVersion;
}

}  // namespace gso
