// Which SharingPolicy governs a node. Policies are matched here and nowhere else.
#pragma once

#include <vector>

#include "reconcilers/model/objects.h"
#include "reconcilers/model/policy.h"

namespace gso {

// Whether the policy's selector takes the node.
[[nodiscard]] bool policy_selects(const SharingPolicy& policy, const Node& node);
// The first that selects the node; null where none does.
[[nodiscard]] const SharingPolicy* governing_policy(const std::vector<const SharingPolicy*>& policies,
                                                    const Node& node);

}  // namespace gso
