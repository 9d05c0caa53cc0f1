// The labels by which a node shows how its GPUs are shared: those that GPU Feature Discovery, or without it the
// operator (node.labels), writes according to the profile. No other label of a node is written or taken back as one.
#pragma once

#include <string_view>

namespace gso {

// Of nvidia.com: mps.capable, and of each resource replicas, sharing-strategy and product.
[[nodiscard]] bool is_sharing_label(std::string_view label);

}  // namespace gso
