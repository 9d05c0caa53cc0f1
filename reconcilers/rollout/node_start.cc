#include "reconcilers/rollout/node_start.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "reconcilers/node/node_patch.h"
#include "reconcilers/node/node_step.h"
#include "reconcilers/node/node_use.h"
#include "reconcilers/rollout/canary.h"
#include "reconcilers/rollout/deferrals.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {

void start_node(Pass& pass, const Node& node, const NodeAssessment& a, const RolloutSpec& rollout, bool live) {
  const std::string& name = node.meta.name;
  const NodeView view = view_of(pass, node, a);
  NodeChange change = begin_change(view, {a.transition, a.cause});
  // A canary that was verified and then stopped serving still counts for or against its revision.
  const RolloutKey profile_rollout = pass.index.rollout_key_of(a);
  RolloutView& rollout_view = rollout_of(pass, profile_rollout);
  const bool was_canary =
      a.loaded.revision == a.target && !rollout_view.is_verified_on(std::string(a.product.view())) &&
      (is_recorded_canary(rollout_view, name) || rollout_view.canary_passed(std::string(a.product.view())));
  change.served = change.served || was_canary;
  change.had_turn = has_had_turn(pass, name);
  if (change.served && !rollout_view.canary_passed(std::string(a.product.view())))
    rollout_view.started_canaries.insert(name);
  const bool cordon = start_cordons(rollout.cordon, a.transition, live);
  pass.add(patch_into(view, change, {.cordon = cordon, .live = live}), "Update",
           fmt::format("{} -> {} ({}, {})", a.loaded.revision.empty() ? "unknown" : a.loaded.revision.view(),
                       a.target.view(), to_string(a.cause), to_string(a.transition)),
           true, name);
  pass.plan.timers.push_back(unchanged_timer(name, a.target.view()));
  if (!live) {
    pass.plan.consumers_wanted.insert(name);
    pass.plan.timers.push_back(draining_timer(name, change));
    return;
  }
  const auto first = first_components(a, change.kind);
  for (PlannedAction& deletion : deletions(view, change, first, fmt::format("to {}", a.target.view()))) {
    pass.add(std::move(deletion.action), deletion.reason, std::move(deletion.message), true, name);
  }
  pass.plan.timers.push_back(verifying_timer(name, change));
}

}  // namespace gso
