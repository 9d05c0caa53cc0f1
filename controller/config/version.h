// The operator's version, from the build.
#pragma once

#include <string>

namespace gso {

[[nodiscard]] const std::string& version();

}  // namespace gso
