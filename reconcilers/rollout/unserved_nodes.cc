#include "reconcilers/rollout/unserved_nodes.h"

#include <optional>

#include "reconcilers/cluster/policy_match.h"

namespace gso {

NodePolicies::NodePolicies(const Index& index, const World& world)
    : index_(&index), world_(&world), policies_(policies_in_order(world, index.built_in_policy, index.held_policies)) {}

const SharingPolicy& NodePolicies::of(const Node& node) const {
  if (const NodeAssessment* a = index_->find(node.meta.name)) return index_->policy(*world_, a->policy.view());
  const SharingPolicy* governs = governing_policy(policies_, node);
  return governs != nullptr ? *governs : index_->built_in_policy;
}

UnservedNodes::UnservedNodes(const Pass& pass) {
  std::optional<NodePolicies> policies;
  for (const std::string& name : pass.index.nodes_in(Bucket::standalone_mps)) {
    const Node* node = pass.s.world.nodes.find(name);
    const NodeAssessment* a = pass.index.find(name);
    const bool served = a != nullptr && a->phase != Phase::unmanaged;
    if (node == nullptr || served) continue;
    if (!policies) policies.emplace(pass.index, pass.s.world);
    Nodes& out = policies_[policies->of(*node).meta.name];
    ++out.total;
    if (pass.index.nodes_in(Bucket::busy).contains(name)) out.busy.insert(name);
  }
}

const UnservedNodes::Nodes& UnservedNodes::of(std::string_view policy) const {
  static const Nodes none;
  const auto found = policies_.find(policy);
  return found == policies_.end() ? none : found->second;
}

std::int64_t UnservedNodes::total(std::string_view policy) const {
  return of(policy).total;
}

const std::set<std::string>& UnservedNodes::busy(std::string_view policy) const {
  return of(policy).busy;
}

}  // namespace gso
