// A label of one policy that becomes another policy's.
#pragma once

#include <string_view>

#include "reconcilers/model/objects.h"
#include "reconcilers/node/node_labels.h"

namespace gso {

// The operator's label `key` stays, and becomes that policy's. Its value from before the first policy stays recorded.
[[nodiscard]] LabelChange hand_over_label(const Node& node, std::string_view key, std::string_view policy);

}  // namespace gso
