// Whether a ConfigMap can take another key. The API server refuses a ConfigMap with more than 1 MiB of data
// (ValidateConfigMap in pkg/apis/core/validation).
#pragma once

#include <cstddef>
#include <string_view>

#include "reconcilers/model/objects.h"

namespace gso {

// A key of this name and text can be added, after `more` bytes that are to be added as well. Some room stays for what
// others write.
[[nodiscard]] bool has_room(const ConfigMap& config_map, std::string_view key, std::string_view text,
                            std::size_t more = 0);

}  // namespace gso
