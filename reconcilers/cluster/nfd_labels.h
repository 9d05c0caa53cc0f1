// One label of Node Feature Discovery's: nfd_owned() of label_owners.h gives all of them.
#pragma once

#include <string_view>

#include "reconcilers/model/snapshot.h"

namespace gso {

// NFD owns that label on the node. Each assessment of a node asks for one of the hundred that NFD's annotation lists.
[[nodiscard]] bool nfd_owns(const Node& node, std::string_view label);

}  // namespace gso
