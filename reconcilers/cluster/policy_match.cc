// See policy_match.h.
#include "reconcilers/cluster/policy_match.h"

#include <algorithm>

namespace gso {

bool policy_selects(const SharingPolicy& policy, const Node& node) {
  return policy.node_selector.matches(node.meta.labels);
}

const SharingPolicy* governing_policy(const std::vector<const SharingPolicy*>& policies, const Node& node) {
  const auto it =
      std::ranges::find_if(policies, [&](const SharingPolicy* policy) { return policy_selects(*policy, node); });
  return it == policies.end() ? nullptr : *it;
}

}  // namespace gso
