// The GPUs of a machine as people write them down: the annotation gpusharing.dev/devices and `expect --devices`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/error.h"
#include "reconcilers/profile/expected.h"

namespace gso {

// The JSON of `expect --devices` (design: command line). Errors (reason `decode`) name the entry and the field.
// `ignored`: gets a sentence for each field that does not exist.
[[nodiscard]] k8s::Result<std::vector<Device>> parse_devices(std::string_view json,
                                                             std::vector<std::string>* ignored = nullptr);

}  // namespace gso
