#include "reconcilers/rollout/canary.h"

#include <fmt/format.h>

#include <algorithm>

#include "reconcilers/rollout/rollout_view.h"

namespace gso {

Canary canary_of(const RolloutView& rollout, const std::string& product) {
  const RolloutSpec& spec = rollout.policy.rollout;
  if (spec.canary_nodes_per_group <= 0 || rollout.verified) return {.passed = true, .verified = true, .soaks_to = {}};
  const Group& group = rollout.unit.groups.at(product);
  if (group.tally.settled < std::min(spec.canary_nodes_per_group, group.tally.total)) return {};
  // Seen since the canary was verified.
  const TimerKey soaking{Timer::soaking, rollout_name(rollout.key, rollout.target), product};
  Canary out{.passed = rollout.pass.held_for(soaking, spec.canary_soak), .verified = true, .soaks_to = {}};
  if (!out.passed) {
    out.soaks_to = rollout.pass.since(soaking) + std::chrono::ceil<std::chrono::milliseconds>(spec.canary_soak);
  }
  return out;
}

std::int64_t canaries_in_flight(const RolloutView& rollout, const std::string& product) {
  return std::ranges::count_if(rollout.in_flight_to(rollout.target), [&](const std::string& name) {
    const NodeAssessment& a = *rollout.pass.index.find(name);
    return a.change->served && a.product == product;
  });
}

// Another one in its place would take as many nodes down as there are. It gets well by itself, is restarted after
// verifyTimeout, or fails then.
std::string unwell_canary(const RolloutView& rollout) {
  if (rollout.verified) return {};
  const RolloutSpec& spec = rollout.policy.rollout;
  for (const auto& [product, group] : rollout.unit.groups) {
    if (group.tally.unwell == 0 || group.pending.empty() || group.tally.settled >= spec.canary_nodes_per_group)
      continue;
    for (const std::string& name : rollout.pass.index.nodes_in(Bucket::drifting)) {
      const NodeAssessment& a = *rollout.pass.index.find(name);
      if (!rollout.has(a) || a.product != product) continue;
      return fmt::format(
          "{} was verified and does not show its profile any more: {}; it is restarted when that lasts {}", name,
          shown_difference(a), k8s::format_go_duration(spec.verify_timeout));
    }
  }
  return {};
}

}  // namespace gso
