#include "reconcilers/rollout/out_of_reach.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "reconcilers/model/labels.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {

namespace {

std::pair<std::string_view, std::string_view> who_has(const Pass& pass, const std::string& name,
                                                      const NodeAssessment& a) {
  const Node* node = pass.s.world.nodes.find(name);
  if (a.is_held()) return {kHeld, "carries gpusharing.dev/hold=true: it is left as it is until that is removed"};
  const auto holder = node == nullptr ? std::string_view() : foreign_holder(*node, pass.index.installation_of(a));
  if (holder == kDriverUpgrade) return {holder, "a driver upgrade is under way on the node"};
  if (!holder.empty()) return {holder, "the MIG manager is changing the node"};
  if (!a.ready && !a.change) return {kNotReady, "is left alone until it is Ready, and counts against the budgets"};
  return {};
}

}  // namespace

OutOfReach out_of_reach_of(RolloutView& rollout) {
  OutOfReach out;
  const Unit& unit = rollout.unit;
  std::map<std::string, std::int64_t> stuck, waiting;  // By product: in flight, and not.
  bool moves = (unit.tally.of(Phase::following_daemonset) > 0);
  const auto note = [&](const std::string& name, std::map<std::string, std::int64_t>& count) {
    const NodeAssessment& a = *rollout.pass.index.find(name);
    const auto [reason, why] = who_has(rollout.pass, name, a);
    if (reason.empty()) return false;
    out.nodes[std::string(reason)].emplace(name, why);
    ++count[std::string(a.product.view())];
    return true;
  };
  for (const std::string& name : unit.nodes(RolloutBucket::set_aside)) {
    if (rollout.pass.index.find(name)->phase == Phase::pending) (void)note(name, waiting);
  }
  for (const std::string& name : unit.nodes(RolloutBucket::stuck)) {
    const NodeAssessment& a = *rollout.pass.index.find(name);
    if (note(name, stuck) && !is_canary(a))
      --stuck[std::string(a.product.view())];  // It keeps no canary from starting.
  }
  moves = moves || unit.tally.changing > std::ssize(unit.nodes(RolloutBucket::stuck));
  const std::int64_t quota = rollout.policy.rollout.canary_nodes_per_group;
  out.stops_all = !moves && !out.nodes.empty() && std::ranges::all_of(unit.groups, [&](const auto& entry) {
    const auto& [product, group] = entry;
    if (static_cast<std::int64_t>(group.pending.size()) <= waiting[product]) return true;
    const Canary& canary = rollout.canary(product);
    return !canary.verified && canary.proven + stuck[product] >= quota;
  });
  return out;
}

}  // namespace gso
