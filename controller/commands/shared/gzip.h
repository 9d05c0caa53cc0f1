// The gzip format, by zlib, which libcurl brings along.
#pragma once

#include <string>
#include <string_view>

#include "k8sclient/value/error.h"

namespace gso {

// `bytes` compressed, as one member of a .gz file without a name and a time. Errors: `decode`, if zlib has no memory.
[[nodiscard]] k8s::Result<std::string> gzipped(std::string_view bytes);

}  // namespace gso
