// A node's GPUs out of its manifest, for `expect --node`.
#pragma once

#include <string_view>
#include <vector>

#include "k8sclient/value/error.h"
#include "reconcilers/profile/expected.h"

namespace gso {

// From the annotation gpusharing.dev/devices, else from GFD's labels of a node with one GPU model and no MIG. Errors
// (reason `decode`) say what the manifest lacks.
[[nodiscard]] k8s::Result<std::vector<Device>> devices_of_node(std::string_view manifest);

}  // namespace gso
