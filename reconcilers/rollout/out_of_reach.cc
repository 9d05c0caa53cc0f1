#include "reconcilers/rollout/out_of_reach.h"

#include <algorithm>
#include <cstdint>

#include "reconcilers/model/labels.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {

NodeOutOfReach node_out_of_reach(const NodeAssessment& a, const Node& node) {
  const std::string_view reason = excuse_of(a);
  if (reason.empty() || (reason == kNodesNotReady && a.change)) return {};
  if (reason == kNodesNotReady) return {reason, std::string(kNotReadyText)};
  return {reason, describe_holder(reason, node)};
}

OutOfReach out_of_reach_of(const RolloutView& rollout) {
  OutOfReach out;
  const ProfileRollout& profile_rollout = rollout.profile_rollout;
  std::map<std::string, std::int64_t> stuck, waiting;  // By product: in a change, and pending.
  bool moves = (profile_rollout.tally.of(Phase::following_daemonset) > 0);
  const auto note = [&](const std::string& name, std::map<std::string, std::int64_t>& count) {
    const NodeAssessment& a = *rollout.pass.index.find(name);
    const Node* node = rollout.pass.s.world.nodes.find(name);
    if (node == nullptr) return false;
    const auto [reason, why] = node_out_of_reach(a, *node);
    if (reason.empty()) return false;
    out.nodes[std::string(reason)].emplace(name, why);
    ++count[std::string(a.product.view())];
    return true;
  };
  for (const std::string& name : profile_rollout.nodes(RolloutBucket::set_aside)) {
    if (rollout.pass.index.find(name)->phase == Phase::pending) (void)note(name, waiting);
  }
  for (const std::string& name : profile_rollout.nodes(RolloutBucket::stuck)) {
    const NodeAssessment& a = *rollout.pass.index.find(name);
    if (note(name, stuck) && !is_canary(a))
      // It does not prevent a canary from starting.
      --stuck[std::string(a.product.view())];
  }
  moves = moves || profile_rollout.tally.changing > std::ssize(profile_rollout.nodes(RolloutBucket::stuck));
  const std::int64_t quota = rollout.policy.rollout.canary_nodes_per_group;
  out.stops_all = !moves && !out.nodes.empty() && std::ranges::all_of(profile_rollout.groups, [&](const auto& entry) {
    const auto& [product, group] = entry;
    if (static_cast<std::int64_t>(group.pending.size()) <= waiting[product]) return true;
    const Canary& canary = rollout.canary(product);
    return !canary.verified && std::ssize(canary.proven) + stuck[product] >= quota;
  });
  return out;
}

}  // namespace gso
