// See lost_labels.h.
#include "reconcilers/node/lost_labels.h"

#include "reconcilers/cluster/policy_match.h"

namespace gso {

bool selects_but_for_lost_labels(const SharingPolicy& policy, const Node& node) {
  using k8s::LabelOperator;
  if (policy_selects(policy, node)) return false;
  Node whole = node;
  const auto add = [&whole](const std::string& label, const std::string& value) {
    if (!whole.meta.labels.contains(label)) whole.meta.labels.set(label, value);
  };
  for (const auto& [label, value] : policy.node_selector.match_labels) add(label, value);
  for (const k8s::LabelRequirement& requirement : policy.node_selector.match_expressions) {
    if (requirement.op == LabelOperator::exists) add(requirement.key, "");
    if (requirement.op == LabelOperator::in && !requirement.values.empty())
      add(requirement.key, requirement.values.front());
  }
  return policy_selects(policy, whole);
}

}  // namespace gso
