// The GPUs of a machine as people write them down: the annotation gpusharing.dev/devices, `expect --devices`, and a
// Node's manifest.
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

// For `expect --node`: from the annotation gpusharing.dev/devices, else from GFD's labels of a node with one GPU model
// and no MIG. Errors (reason `decode`) say what the manifest lacks.
[[nodiscard]] k8s::Result<std::vector<Device>> devices_of_node(std::string_view manifest);

}  // namespace gso
