#include "reconcilers/rollout/change_steps.h"

#include <utility>

#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/kai_gate.h"
#include "reconcilers/rollout/recorded_timers.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {

bool ChangeSteps::is_undecided(const std::string& node, const NodeAssessment& a) const {
  return !pass_.index.record || !pass_.plannable(a) || pass_.s.world.nodes_being_written.contains(node);
}

Step ChangeSteps::of(const Node& node, const NodeAssessment& a) {
  const std::string& name = node.meta.name;
  const NodeView view = view_of(pass_, node, a);
  const SharingPolicy& policy = pass_.index.policy(pass_.s.world, a.policy.view());
  std::optional<BlockedBy> who = blocked_by_pods(pass_, name, a);
  std::optional<Stop> stop = stop_for(name, a, who);
  ProfilePtr begun_for = profile_begun_for(view, pass_.index.record_or_null(), pass_.index.profiles);
  StepInput input{view, policy, std::move(begun_for), std::move(stop), std::move(who), {}};
  input.kai_hinders = [this, &name, &a] { return kai_hindrance(pass_, name, a); };
  input.released = released_since(pass_, name, *a.change);
  return step(input);
}

std::optional<Stop> ChangeSteps::stop_for(const std::string& name, const NodeAssessment& a,
                                          const std::optional<BlockedBy>& who) {
  RolloutView* rollout = find_rollout(pass_, pass_.index.rollout_key_of(a));
  if (rollout != nullptr) {
    const std::optional<Stop>& stop = is_drift_repair(*a.change) ? rollout->stop_of_repairs() : rollout->stop();
    if (stop) return stop;
  }
  return who ? yield_.stop_for(name, a, *who) : std::nullopt;
}

}  // namespace gso
